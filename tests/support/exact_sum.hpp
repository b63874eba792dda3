// Sums of floats without any rounding, in MPFR.
#pragma once

#include <mpfr.h>

#include <cmath>
#include <stdexcept>
#include <utility>

namespace chainfold::test {

/// An MPFR number with a precision that holds any sum of 2^48 doubles exactly.
class Real {
 public:
  static constexpr mpfr_prec_t kPrecision = 2200;
  explicit Real(double value = 0, mpfr_prec_t precision = kPrecision) {
    mpfr_init2(value_, precision);
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  Real(const Real& other) {
    mpfr_init2(value_, mpfr_get_prec(other.value_));
    mpfr_set(value_, other.value_, MPFR_RNDN);
  }
  Real& operator=(const Real& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Real() { mpfr_clear(value_); }

  /// Adds without rounding; throws std::logic_error if the precision does not hold the sum.
  void add_exactly(double value) {
    if (mpfr_add_d(value_, value_, value, MPFR_RNDN) != 0)
      throw std::logic_error("an exact sum was rounded");
  }
  Real& operator+=(const Real& b) { return mpfr_add(value_, value_, b.value_, MPFR_RNDN), *this; }
  Real& operator-=(const Real& b) { return mpfr_sub(value_, value_, b.value_, MPFR_RNDN), *this; }
  Real& operator*=(const Real& b) { return mpfr_mul(value_, value_, b.value_, MPFR_RNDN), *this; }
  Real& operator/=(const Real& b) { return mpfr_div(value_, value_, b.value_, MPFR_RNDN), *this; }
  [[nodiscard]] Real root() const {
    Real result(0, mpfr_get_prec(value_));
    mpfr_sqrt(result.value_, value_, MPFR_RNDN);
    return result;
  }
  [[nodiscard]] Real negated() const {
    Real result = *this;
    mpfr_neg(result.value_, value_, MPFR_RNDN);
    return result;
  }
  [[nodiscard]] long double to_long_double() const { return mpfr_get_ld(value_, MPFR_RNDN); }
  [[nodiscard]] double down() const { return mpfr_get_d(value_, MPFR_RNDD); }
  [[nodiscard]] double up() const { return mpfr_get_d(value_, MPFR_RNDU); }
  [[nodiscard]] double nearest() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

/// A sum in progress, with what is not finite counted apart.
class ExactSum {
 public:
  void add(double value) {
    if (std::isnan(value)) {
      nan_ = true;
    } else if (std::isinf(value)) {
      (value > 0 ? up_ : down_) = true;
    } else {
      sum_.add_exactly(value);
      abs_ += std::fabs(value);
    }
  }
  [[nodiscard]] bool is_nan() const { return nan_ || (up_ && down_); }
  [[nodiscard]] bool is_infinite() const { return up_ != down_; }
  [[nodiscard]] double infinity() const { return up_ ? HUGE_VAL : -HUGE_VAL; }
  [[nodiscard]] const Real& sum() const { return sum_; }
  /// The same, which may be beyond a double's range.
  [[nodiscard]] long double abs() const { return abs_; }
  /// The sum of absolute values, a little rounded up.
  [[nodiscard]] double sum_abs() const { return static_cast<double>(abs_ * (1 + 0x1p-40L)); }

 private:
  Real sum_;
  long double abs_ = 0;
  bool nan_ = false, up_ = false, down_ = false;
};

}  // namespace chainfold::test
