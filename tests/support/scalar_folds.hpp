// Folds of one's own once more, as plain loops over the elements of a segment: a third opinion
// beside the library and the reference, which share the monoid's own expressions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/codegen/target/target.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

struct ScalarFold {
  std::string program;  ///< of programs(); its first output is what `value` computes
  /// The value of elements [begin, end).
  std::function<Bits(const std::vector<Column>& inputs, std::int64_t begin, std::int64_t end)>
      value;
};
const std::vector<ScalarFold>& scalar_folds();

/// Segment sizes at which the order is tested; 0: the whole.
inline constexpr std::int64_t kOrderSizes[] = {1,   2,   7,   8,   16,   31,   32,    33, 64,
                                               100, 255, 256, 257, 1000, 4096, 65537, 0};
/// The first outputs that differ from the loop's, in words; empty if none does.
std::string compare(const ScalarFold& fold, const std::vector<Column>& inputs,
                    const std::vector<Column>& outputs, std::int64_t segment,
                    std::int64_t elements);

/// Compiles the fold for `target` at every size of kOrderSizes or, with a step, at one in so many
/// of them, runs it through the public interface and compares. `turn` picks the data and the first
/// size. What went wrong, empty if nothing did.
std::string check_fold_order(const ScalarFold& fold, const codegen::Target& target,
                             std::size_t turn, std::size_t step = 1);

}  // namespace chainfold::test
