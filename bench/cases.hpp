// What is measured: computations, their inputs, and exact references for their results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/bench/random_data.hpp"
#include "chainfold/chainfold.hpp"

namespace chainfold::bench {

enum class Op : std::uint8_t { sum, mean_rms, max, q6 };
const char* name_of(Op op);

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
  /// e.g. "sum f16->f16 S=64"; what --only matches, with the target behind it.
  [[nodiscard]] std::string name() const;
};

/// A case over as many whole segments as fit into `elements`.
Case make_case(Op op, DType in, DType out, std::int64_t elements, std::int64_t segment);

/// What an output must be: the exact value and the sum of the absolute values that went into it,
/// the unit in which rounding errors of sums are told.
struct Expected {
  double value = 0;
  double magnitude = 0;
};
/// The outputs of the elements [begin, end), computed in integers on all cores.
std::vector<Expected> reference(const Case& test, std::int64_t begin, std::int64_t end);

/// The largest error bound that a plan's text names; 0 if all its folds are exact.
double bound_of_plan(const std::string& plan);

/// Checks single results of a case against the reference and keeps the largest error.
class Checker {
 public:
  /// Sums may err by `bound_u` units of rounding (of f32, for an f64 sum of f64) times the sum of
  /// absolute values.
  Checker(const Case& test, double bound_u) : test_(test), bound_u_(bound_u) {}
  /// The segments worth looking at: the first, the last and random ones, within a budget of
  /// elements.
  [[nodiscard]] std::vector<std::int64_t> sample() const;
  /// Takes the bytes of one value of every output of a segment. Throws std::runtime_error where one
  /// is wrong.
  void check(std::int64_t segment, const std::vector<std::vector<std::byte>>& outputs);
  /// The largest error so far, in units of rounding (2^-11, 2^-24 or 2^-53 by the output's type)
  /// times the sum of absolute values.
  [[nodiscard]] double max_error_u() const { return max_error_u_; }

 private:
  const Case& test_;
  double bound_u_ = 0;
  double max_error_u_ = 0;
};

}  // namespace chainfold::bench
