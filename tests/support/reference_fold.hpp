// The reference's values, and its folds: what the elements of a segment must give, in MPFR where
// the library may round.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/tests/support/data.hpp"
#include "chainfold/tests/support/exact_sum.hpp"

namespace chainfold::test {

/// 2^-24, of f64 2^-53.
inline double rounding_unit(DType type) { return type == DType::f64 ? 0x1p-53 : 0x1p-24; }
/// The neighbouring values of an f32 or f64.
double next_up(DType type, double x);
double next_down(DType type, double x);

/// Against which the error of a float sum is measured.
struct SumFacts {
  double exact = 0, exact_low = 0;  ///< the sum is exact + exact_low
  double sum_abs = 0;
};

/// What a value may be: like Expected, without its type.
struct Value {
  bool any = false, nan = false, interval = false, positive_zero = false;
  Bits bits = 0;
  double lo = 0, hi = 0;
  std::optional<SumFacts> sum{};  ///< of a float sum itself

  static Value exactly(DType type, Bits bits);
  static Value nothing_promised();
  static Value between(DType type, double lo, double hi);
  /// The ends, as bits.
  [[nodiscard]] std::vector<Bits> corners(DType type) const;
  [[nodiscard]] bool contains_zero(DType type) const;
};

/// One segment's state of one fold. Results may be asked for at any time, which scans do.
class Accumulator {
 public:
  explicit Accumulator(const codegen::Fold& fold);
  /// One element more: behind all others, or (`front`) before them.
  void add(const std::vector<Bits>& operands, bool front = false);
  /// What a result depends on besides the elements.
  struct Asked {
    double bound_u = 0;  ///< the plan's
    double slack = 0;    ///< what the terms themselves may deviate, relatively
    int levels = 0;      ///< the longest chain of merges that an element goes through
    int part = 0;        ///< which of the fold's results
    /// Of a scan or beside one: nothing is promised beyond the range of absolute values.
    bool scanned = false;
    std::vector<Bits> given{};  ///< what finalize is given
  };
  [[nodiscard]] Value result(const Asked& asked) const;

 private:
  [[nodiscard]] bool is(const char* prefix) const { return fold_->name.rfind(prefix, 0) == 0; }
  void add_number(double x, double rest = 0);
  /// One element of a recurrence in whose direction it comes last.
  void step(double factor, double value);
  [[nodiscard]] Value recurrence_result(const std::vector<Bits>& given) const;
  /// Statistics of one or two variables, in two passes over all values.
  [[nodiscard]] Value statistic_result(const Asked& asked) const;
  [[nodiscard]] Value product_result() const;
  [[nodiscard]] Value logsumexp_result(int levels) const;
  [[nodiscard]] Value sum_result(const Asked& asked) const;
  [[nodiscard]] Value mean_result(double slack) const;
  [[nodiscard]] Value variance_result(const Asked& asked) const;

  static constexpr mpfr_prec_t kProductBits = 300, kVarianceBits = 1200, kRecurrenceBits = 300;
  const codegen::Fold* fold_;
  bool is_sum_ = false, is_mean_ = false, is_variance_ = false, is_product_ = false,
       is_logsumexp_ = false, is_recurrence_ = false, is_statistic_ = false;
  std::int64_t count_ = 0;
  std::vector<Bits> state_;
  ExactSum sum_;
  // Of variances, products and logsumexp:
  double nan_ = 0;  // the first NaN
  bool has_nan_ = false, has_infinity_ = false;
  double up_ = 0, down_ = 0;  // product: binary digits that factors above and below 1 add
  Real product_ = Real(1, kProductBits);
  /// Statistics: each element's value of each variable, in two parts.
  struct Parts {
    double high = 0, low = 0;
  };
  std::vector<Parts> variables_[2];
  /// Recurrence: the product of the factors, y from 0, and the same of absolute values.
  Real factors_ = Real(1, kRecurrenceBits), y_ = Real(0, kRecurrenceBits),
       sizes_ = Real(0, kRecurrenceBits);
  Real total_ = Real(0, kVarianceBits), squares_ = Real(0, kVarianceBits);
  double largest_ = 0;  // of absolute values
  long double sum_of_squares_ = 0;
  double top_ = -std::numeric_limits<double>::infinity();
  long double scaled_ = 0;  // logsumexp: the sum of exp(x - top)
};

}  // namespace chainfold::test
