// What is measured: computations and their inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/bench/op.hpp"
#include "chainfold/bench/random_data.hpp"
#include "chainfold/chainfold.hpp"

namespace chainfold::bench {

/// One computation at one size.
struct Case {
  Op op;
  DType in, out;
  std::int64_t elements;  ///< a multiple of the segment size
  std::int64_t segment;   ///< 0: whole
  Computation computation;

  struct Input {
    std::string name;
    Source source;
    DType type;
  };
  [[nodiscard]] std::vector<Input> inputs() const;
  [[nodiscard]] std::int64_t segments() const { return segment > 0 ? elements / segment : 1; }
  [[nodiscard]] std::int64_t bytes_read() const;
  [[nodiscard]] std::int64_t bytes_written() const;
  /// e.g. "sum f16->f16 S=64"; what --only of the suite `first` matches, with the target behind it.
  [[nodiscard]] std::string name() const;
};

/// A case over as many whole segments as fit into `elements`.
Case make_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment);

}  // namespace chainfold::bench
