// Folds of values near the ends of their types, whose results are ordinary numbers: what they must
// be, and how to see it on any executor, in any partition.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

struct EndCase {
  std::string name;
  DType type = DType::f32;  ///< of the input "x"
  /// One fold of "x" over the partition, of the elements for which "keep" (bool) is true if it is
  /// filtered, running if it is scanned.
  enum class Form : std::uint8_t { plain, filtered, running };
  std::function<Computation(const dsl::Partition&, Form)> over;
  /// `n` elements of a segment, and what must come of them: within `off` of it, relatively.
  std::function<std::vector<Bits>(std::int64_t n)> elements;
  std::function<double(const std::vector<Bits>&)> right;
  double off = 0;
  /// What scans do not promise.
  bool no_scan = false;
};

const std::vector<EndCase>& end_cases();

/// The outputs of a computation over the inputs of its graph, in rows of `row` elements (0: the
/// whole).
using Executor = std::function<std::vector<Column>(
    const Computation& computation, const std::vector<Column>& inputs, std::int64_t row)>;

/// Whole inputs, segments, columns, filtered and running ones of `n` elements each: the first that
/// is not right; empty if all are.
std::string check_end_case(const EndCase& what, std::int64_t n, const Executor& executor);

/// Through Kernel::run on a target.
Executor kernel_executor(const Target& target);

}  // namespace chainfold::test
