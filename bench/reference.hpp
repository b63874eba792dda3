// What the results of a case must be, exactly, and how far what was computed may deviate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chainfold/bench/cases.hpp"

namespace chainfold::bench {

/// What an output must be: the exact value (of an integer: what is left of it in the output's type)
/// and the sum of the absolute values that went into it, the unit in which rounding errors of sums
/// are told.
struct Expected {
  double value = 0;
  double magnitude = 0;
};
/// The outputs of a segment or column, or of scans of an element, computed in integers on all
/// cores.
std::vector<Expected> reference(const Case& test, std::int64_t index);
/// The same for several, in ascending order. Of scans a segment is gone through once.
std::vector<std::vector<Expected>> references(const Case& test,
                                              const std::vector<std::int64_t>& indices);

/// The bytes of one value of every output: of a segment or, of scans, of an element.
using ValuesOf = std::function<std::vector<std::vector<std::byte>>(std::int64_t index)>;

/// A result that is further off than its bound allows.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How far results were off.
struct Deviation {
  /// Of the largest error: units of rounding (2^-11, 2^-8, 2^-24 or 2^-53 by the output's type)
  /// times the sum of absolute values.
  double units = 0;
  double percent = 0;     ///< the largest error by the exact value; of scans, of segments' ends
  bool overflow = false;  ///< a value was not finite where that is allowed
};

/// Checks results of a case against the reference, which it computes once for a sample of segments:
/// the first, the last and random ones, within a budget of elements. Of scans it looks at some
/// elements of these segments: the first, the last, random ones and, where there are few segments,
/// those before and behind powers of two, where tiles meet.
class Checker {
 public:
  explicit Checker(const Case& test);
  /// Segments or, of scans, elements.
  [[nodiscard]] const std::vector<std::int64_t>& sample() const noexcept { return sample_; }
  /// Sums may err by `bound_u` units of rounding of f32 (of f64
  /// for sums of f64), a few more for what is done with them, and a narrowing cast; integers and
  /// maxima must be exact. Throws WrongResult where a value is wrong; one that is not finite is,
  /// too, unless `may_overflow`.
  [[nodiscard]] Deviation check(const ValuesOf& values, double bound_u,
                                bool may_overflow = false) const;

 private:
  const Case& test_;
  std::vector<std::int64_t> sample_;
  std::vector<std::vector<Expected>> expected_;
};

}  // namespace chainfold::bench
