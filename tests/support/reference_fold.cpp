#include "chainfold/tests/support/reference_fold.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace chainfold::test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double largest(DType type) {
  if (type == DType::f32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}
double smallest(DType type) { return type == DType::f32 ? 0x1p-149 : 0x1p-1074; }

/// The values of the type around a real number.
double round_up(DType type, double x) {
  if (type != DType::f32 || std::isinf(x)) return x;
  if (x > std::numeric_limits<float>::max()) return kInfinity;
  if (x < -static_cast<double>(std::numeric_limits<float>::max()))
    return -std::numeric_limits<float>::max();
  const double near = static_cast<float>(x);
  return near < x ? next_up(type, near) : near;
}
double round_down(DType type, double x) { return -round_up(type, -x); }

}  // namespace

double next_up(DType type, double x) {
  return type == DType::f32 ? std::nextafter(static_cast<float>(x), HUGE_VALF)
                            : std::nextafter(x, HUGE_VAL);
}
double next_down(DType type, double x) { return -next_up(type, -x); }

// --- values

Value Value::exactly(DType type, Bits bits) {
  Value v;
  v.bits = bits;
  v.nan = is_float(type) && std::isnan(codegen::double_of_bits(type, bits));
  return v;
}

Value Value::nothing_promised() {
  Value v;
  v.any = true;
  return v;
}

Value Value::between(DType type, double lo, double hi) {
  if (!(lo <= hi)) throw std::logic_error(fmt::format("an empty interval [{:a}, {:a}]", lo, hi));
  if (lo == hi && lo != 0) return exactly(type, codegen::bits_of_double(type, lo));
  Value v;
  v.interval = true;
  v.lo = lo;
  v.hi = hi;
  return v;
}

std::vector<Bits> Value::corners(DType type) const {
  if (!interval) return {bits};
  return {codegen::bits_of_double(type, lo), codegen::bits_of_double(type, hi)};
}

bool Value::contains_zero(DType type) const {
  if (interval) return lo <= 0 && hi >= 0;
  return codegen::double_of_bits(type, bits) == 0;
}

// --- folds

Accumulator::Accumulator(const codegen::Fold& fold) : fold_(&fold), state_(fold.init) {
  is_sum_ = fold.linear && is_float(fold.result());
  is_mean_ = is("mean.");
  is_variance_ = is("variance.");
  is_product_ = is("product.") && is_float(fold.result());
  is_logsumexp_ = is("logsumexp.");
  is_recurrence_ = is("recurrence.");
  is_statistic_ = is("comoments.") || is("shape.") || is("deviation.");
}

void Accumulator::add(const std::vector<Bits>& operands, bool front) {
  ++count_;
  const bool is_wide = fold_->operands[0] == DType::i64;  // of 64 bits in two exact halves
  const auto low_of = [](Bits bits) { return static_cast<double>(bits & 0xffff); };
  const auto high_of = [](Bits bits) {
    return static_cast<double>(static_cast<std::int64_t>(bits & ~Bits{0xffff}));
  };
  if (is_statistic_) {
    for (std::size_t v = 0; v < operands.size(); ++v) {
      const Parts parts = is_wide
                              ? Parts{high_of(operands[v]), low_of(operands[v])}
                              : Parts{codegen::double_of_bits(fold_->operands[v], operands[v]), 0};
      has_infinity_ = has_infinity_ || !std::isfinite(parts.high);
      variables_[v].push_back(parts);
    }
    return;
  }
  if (is_variance_ && is_wide) {
    add_number(high_of(operands[0]), low_of(operands[0]));
  } else if (is_recurrence_) {  // in its direction whatever lies at the front
    step(codegen::double_of_bits(fold_->operands[0], operands[0]),
         codegen::double_of_bits(fold_->operands[1], operands[1]));
  } else if (is_sum_ || is_mean_) {
    sum_.add(codegen::double_of_bits(fold_->operands[0], operands[0]));
  } else if (is_variance_ || is_product_ || is_logsumexp_) {
    add_number(codegen::double_of_bits(fold_->operands[0], operands[0]));
  } else {
    const std::vector<Bits> lifted = codegen::evaluate(fold_->lift, operands);
    std::vector<Bits> both = front ? lifted : state_;
    const std::vector<Bits>& later = front ? state_ : lifted;
    both.insert(both.end(), later.begin(), later.end());
    state_ = codegen::evaluate(fold_->merge, both);
  }
}

void Accumulator::step(double factor, double value) {
  if (!std::isfinite(factor) || !std::isfinite(value)) {
    has_infinity_ = true;
    return;
  }
  const Real a(factor, kRecurrenceBits), size(std::fabs(factor), kRecurrenceBits);
  factors_ *= a;
  y_ *= a;
  y_ += Real(value, kRecurrenceBits);
  sizes_ *= size;
  sizes_ += Real(std::fabs(value), kRecurrenceBits);
}

void Accumulator::add_number(double x, double rest) {
  if (std::isnan(x)) {
    if (!has_nan_) nan_ = x;
    has_nan_ = true;
    return;
  }
  has_infinity_ = has_infinity_ || std::isinf(x);
  if (is_product_) {
    (std::fabs(x) >= 1 ? up_ : down_) += std::fabs(std::log2(std::fabs(x)));
    product_ *= Real(x, kProductBits);
  } else if (is_logsumexp_) {
    if (x > top_) {
      scaled_ = std::isinf(top_) ? 0 : scaled_ * expl(static_cast<long double>(top_) - x);
      top_ = x;
    }
    if (std::isfinite(top_)) scaled_ += expl(static_cast<long double>(x) - top_);
  } else if (!std::isinf(x)) {
    Real square(x, kVarianceBits);
    square += Real(rest, kVarianceBits);
    total_ += square;
    square *= square;
    squares_ += square;
    sum_of_squares_ += static_cast<long double>(x) * x;
    largest_ = std::max(largest_, std::fabs(x));
  }
}

Value Accumulator::result(const Asked& asked) const {
  const double slack = asked.slack;
  if (is_sum_) return sum_result(asked);
  if (is_mean_) return mean_result(slack);
  if (is_variance_) return variance_result(asked);
  if (is_statistic_) return statistic_result(asked);
  if (is_product_) return product_result();
  if (is_logsumexp_) return logsumexp_result(asked.levels);
  if (is_recurrence_) return recurrence_result(asked.given);
  const DType type = fold_->result();
  const Bits bits = codegen::evaluate(fold_->finalize, state_)[0];
  const Value value = Value::exactly(type, bits);
  if (slack == 0 || value.nan || !is_float(type)) return value;
  const double x = codegen::double_of_bits(type, bits), off = std::fabs(x) * slack;
  if (std::isinf(x)) return value;
  return Value::between(type, round_down(type, x - off), round_up(type, x + off));
}

/// Every order takes n - 1 roundings, as long as no partial product leaves the range.
Value Accumulator::product_result() const {
  const DType type = fold_->result();
  if (has_nan_) return Value::exactly(type, codegen::bits_of_double(type, nan_));
  if (!(up_ < (type == DType::f32 ? 126 : 1022) && down_ < (type == DType::f32 ? 124 : 1020)))
    return Value::nothing_promised();
  const double n = static_cast<double>(count_) * (1 + 0x1p-4);
  const double error = n * rounding_unit(type) * std::fabs(product_.nearest());
  Real lo = product_, hi = product_;
  lo -= Real(error, kProductBits);
  hi += Real(error, kProductBits);
  return Value::between(type, round_down(type, lo.down()), round_up(type, hi.up()));
}

/// Each merge rounds the scaled sum, its exp (some ulp, relatively) and the difference below it.
Value Accumulator::logsumexp_result(int levels) const {
  const DType type = fold_->result();
  if (has_nan_) return Value::exactly(type, codegen::bits_of_double(type, nan_));
  if (std::isinf(top_)) return Value::exactly(type, codegen::bits_of_double(type, top_));
  const long double value = top_ + logl(scaled_);
  const double error = rounding_unit(type) * (12.0 * levels + 8 + 4 * std::fabs(top_) +
                                              4 * std::fabs(static_cast<double>(value)));
  return Value::between(type, round_down(type, static_cast<double>(value - error)),
                        round_up(type, static_cast<double>(value + error)));
}

namespace {

/// Real numbers between these as values of the type, which rounds what is beyond its largest value
/// to an infinity: from half a unit in its last place on.
Value rounded_between(DType type, const Real& lo, const Real& hi, bool inwards) {
  const double most = largest(type);
  double low = lo.down(), high = hi.up();
  const double low_up = lo.up(), high_down = hi.down();
  if (type == DType::f32) {
    constexpr double kToInfinity = 0x1.ffffffp127;
    if (low >= kToInfinity || high <= -kToInfinity)
      return Value::exactly(type, codegen::bits_of_double(type, low > 0 ? kInfinity : -kInfinity));
    const bool up = high >= kToInfinity, down = low <= -kToInfinity;
    low =
        down ? -kInfinity : std::max(-most, inwards ? round_up(type, low) : round_down(type, low));
    high = up ? kInfinity : std::min(most, inwards ? round_down(type, high) : round_up(type, high));
  } else {  // some bits beyond the largest one
    if (low_up == kInfinity) high = kInfinity;
    if (high_down == -kInfinity) low = -kInfinity;
  }
  return Value::between(type, std::min(low, high), std::max(low, high));
}

}  // namespace

/// One rounding, of what is computed with twice the digits.
Value Accumulator::recurrence_result(const std::vector<Bits>& given) const {
  const DType type = fold_->result();
  Real lo = y_, size = sizes_;
  if (!given.empty()) {
    const double first = codegen::double_of_bits(type, given[0]);
    if (!std::isfinite(first)) return Value::nothing_promised();
    Real before = factors_;
    before *= Real(first, kRecurrenceBits);
    lo += before;
    size += before.down() < 0 ? before.negated() : before;
  }
  if (has_infinity_) return Value::nothing_promised();
  size *= Real(rounding_unit(type) * (1 + 0x1p-6), kRecurrenceBits);
  size += Real(smallest(type), kRecurrenceBits);
  Real hi = lo;
  lo -= size;
  hi += size;
  Value value = rounded_between(type, lo, hi, false);
  value.positive_zero = false;
  return value;
}

Value Accumulator::mean_result(double slack) const {
  const DType type = fold_->result();
  auto bits = [&](double x) { return codegen::bits_of_double(type, x); };
  if (count_ == 0 || sum_.is_nan()) return Value::exactly(type, bits(std::nan("")));
  if (sum_.is_infinite()) return Value::exactly(type, bits(sum_.infinity()));
  // Rounded once, and 2^-100 of the absolute mean.
  const auto n = static_cast<double>(count_);
  Real mean = sum_.sum(), off(static_cast<double>(sum_.sum_abs() / n) * (slack + 0x1p-100));
  mean /= Real(n);
  Real lo = mean, hi = mean;
  lo -= off;
  hi += off;
  return Value::between(type, lo.nearest(), hi.nearest());
}

Value Accumulator::sum_result(const Asked& asked) const {
  const DType type = fold_->result(asked.part), in = fold_->operands[0];
  auto bits = [&](double x) { return codegen::bits_of_double(type, x); };
  if (sum_.is_nan()) return Value::exactly(type, bits(std::nan("")));
  if (asked.scanned && sum_.sum_abs() * (1 + 0x1p-12) >= largest(in))
    return Value::nothing_promised();
  if (sum_.is_infinite()) return Value::exactly(type, bits(sum_.infinity()));
  SumFacts facts{.exact = sum_.sum().nearest(), .exact_low = 0, .sum_abs = sum_.sum_abs()};
  Real rest = sum_.sum();
  rest -= Real(facts.exact);
  facts.exact_low = std::isfinite(facts.exact) ? rest.nearest() : 0;
  // The bound is of first order in u: 2^-12 of it covers the rest.
  const long double error = (asked.bound_u * (1 + 0x1p-12) * rounding_unit(in) + asked.slack) *
                            sum_.abs() * (1 + 0x1p-40);
  Real lo = sum_.sum(), hi = sum_.sum();
  // In two steps, as it may be beyond a double's range.
  for (int half = 0; half < 2; ++half) {
    lo -= Real(static_cast<double>(error / 2));
    hi += Real(static_cast<double>(error / 2));
  }
  if (error == 0) lo = hi = Real(facts.exact);
  // The library rounds inwards of the bound or its value would not be one of the type.
  Value value = rounded_between(type, lo, hi, true);
  if (value.interval && value.lo == 0 && value.hi == 0)
    value = Value::exactly(type, 0);  // a sum is never -0
  if (value.interval) value.positive_zero = true;
  value.sum = facts;
  return value;
}

namespace {

/// A variable's deviations from its mean, and what the library's mean may be off by.
struct Deviations {
  std::vector<Real> values;
  std::vector<long double> sizes;  // their absolute values
  long double shift = 0;
};

}  // namespace

Value Accumulator::statistic_result(const Asked& asked) const {
  const DType type = DType::f64;
  const auto nothing = Value::exactly(type, codegen::bits_of_double(type, std::nan("")));
  if (count_ == 0 || has_infinity_) return nothing;
  // Each prefix takes all of its elements: of long ones some are looked at.
  constexpr std::int64_t kAll = 256, kEvery = 127;
  if (asked.scanned && count_ > kAll && count_ % kEvery != 0) return Value::nothing_promised();
  // Beside scans a fold has one result, which its name tells.
  const int part = fold_->name.ends_with(".1") ? 1 : asked.part;
  const auto n = static_cast<double>(count_);
  const bool from_first = fold_->operands[0] != DType::f32;
  // Every merge takes some roundings of each sum.
  const long double u = 0x1p-53L, eps = 32 * asked.levels * u + asked.slack;
  Deviations of[2];
  for (int v = 0; v < 2; ++v) {
    Real sum(0, kVarianceBits);
    const auto exact = [&](const Parts& parts) {
      Real value(parts.high, kVarianceBits);
      value += Real(parts.low, kVarianceBits);
      return value;
    };
    for (const Parts& parts : variables_[v]) sum += exact(parts);
    sum /= Real(n, kVarianceBits);
    long double largest = 0;
    for (const Parts& parts : variables_[v]) {
      Real deviation = exact(parts);
      deviation -= sum;
      of[v].sizes.push_back(std::fabs(deviation.to_long_double()));
      largest = std::max(largest, of[v].sizes.back());
      if (!from_first) largest = std::max(largest, static_cast<long double>(std::fabs(parts.high)));
      of[v].values.push_back(std::move(deviation));
    }
    of[v].shift = eps * 2 * largest;
  }
  // The sum of products of deviations, and what it may be off by.
  struct Sum {
    long double value = 0, absolute = 0, error = 0;
  };
  const auto product = [&](const Deviations& a, const Deviations& b) {
    Real sum(0, kVarianceBits);
    Sum result;
    long double sizes_a = 0, sizes_b = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      Real term = a.values[i];
      term *= b.values[i];
      sum += term;
      result.absolute += a.sizes[i] * b.sizes[i];
      sizes_a += a.sizes[i];
      sizes_b += b.sizes[i];
    }
    result.value = sum.to_long_double();
    result.error =
        eps * (result.absolute + a.shift * sizes_b + b.shift * sizes_a) + n * a.shift * b.shift;
    return result;
  };
  const Sum xx = product(of[0], of[0]);
  const auto around = [&](long double value, long double error) {
    error += 0x1p-50L * std::fabs(value) + 4 * static_cast<long double>(smallest(type));
    // A long double, which may be beyond a double's range.
    const auto exact = [](long double x) {
      int steps = 0;
      for (; std::fabs(x) > 0x1p1000L; ++steps) x *= 0x1p-800L;
      Real scaled(static_cast<double>(x), kVarianceBits);
      for (; steps > 0; --steps) scaled *= Real(0x1p800, kVarianceBits);
      return scaled;
    };
    Real lo = exact(value), hi = lo;
    const Real off = exact(error * (1 + 0x1p-40L));
    lo -= off;
    hi += off;
    return rounded_between(type, lo, hi, false);
  };
  if (is("deviation.")) {
    const long double root = std::sqrt(xx.value / n);
    if (root == 0) return Value::between(type, 0, 0);
    return around(root, xx.error / n / (2 * root));
  }
  if (is("comoments.")) {
    const Sum yy = product(of[1], of[1]), xy = product(of[0], of[1]);
    if (part == 0) return around(xy.value / n, xy.error / n);
    if (xx.value == 0 || yy.value == 0) return nothing;
    if (xx.error > xx.value / 2 || yy.error > yy.value / 2) return Value::nothing_promised();
    const long double scale = std::sqrt(xx.value) * std::sqrt(yy.value), r = xy.value / scale;
    const Value value =
        around(r, xy.error / scale + std::fabs(r) * (xx.error / xx.value + yy.error / yy.value));
    return value.interval ? Value::between(type, std::max(value.lo, -1.0), std::min(value.hi, 1.0))
                          : value;
  }
  if (xx.value == 0) return nothing;
  if (xx.error > xx.value / 2) return Value::nothing_promised();
  Real cubes(0, kVarianceBits);
  long double fourths = 0, absolute = 0;
  for (std::size_t i = 0; i < of[0].values.size(); ++i) {
    const Real& d = of[0].values[i];
    Real cube = d;
    cube *= d;
    cube *= d;
    cubes += cube;
    const long double size = of[0].sizes[i];
    absolute += size * size * size;
    fourths += size * size * size * size;
  }
  const long double m2 = xx.value, shift = of[0].shift, relative = xx.error / m2;
  if (part == 0) {
    const long double by = std::sqrt(static_cast<long double>(n)) / (m2 * std::sqrt(m2));
    const long double value = cubes.to_long_double() * by;
    const long double off = eps * absolute + 3 * shift * m2 + n * shift * shift * shift;
    return around(value, off * by + 3 * relative * std::fabs(value));
  }
  const long double by = n / m2 / m2, off = eps * fourths + 4 * shift * absolute +
                                            6 * shift * shift * m2 +
                                            n * shift * shift * shift * shift;
  return around(fourths * by - 3, off * by + (3 * relative + 0x1p-50L) * (fourths * by + 3));
}

Value Accumulator::variance_result(const Asked& asked) const {
  const int levels = asked.levels;
  const double slack = asked.slack;
  const DType type = fold_->result(asked.part);
  if (count_ == 0 || has_nan_ || has_infinity_)
    return Value::exactly(type, codegen::bits_of_double(type, std::nan("")));
  const auto n = static_cast<double>(count_);
  // The squared deviations are the squares less the square of the sum over n.
  Real deviations = squares_, square = total_;
  square *= total_;
  square /= Real(n, kVarianceBits);
  deviations -= square;
  // Every merge rounds M2 a few times and shifts the mean by some u of the largest value, which
  // the next merges square.
  // Both of a mean, so that those of squares that a double cannot hold can be told.
  const DType in = fold_->operands[0] == DType::f32 ? DType::f32 : DType::f64;
  const long double u = rounding_unit(in), depth = levels,
                    m2 = std::max(0.0L, deviations.to_long_double() / n);
  const long double squares = sum_of_squares_ / n;
  const long double error = u * depth * 8 * (m2 + std::sqrt(m2) * std::sqrt(squares)) +
                            (8 * depth * u) * (8 * depth * u) * squares +
                            4 * smallest(type) * (1 + largest_) + 4 * slack * squares;
  Real lo = deviations, hi = deviations;
  lo /= Real(n, kVarianceBits);
  hi /= Real(n, kVarianceBits);
  for (int half = 0; half < 2; ++half) {
    lo -= Real(static_cast<double>(error / 2), kVarianceBits);
    hi += Real(static_cast<double>(error / 2), kVarianceBits);
  }
  if (count_ == 1) return Value::between(type, 0, 0);
  if (lo.down() < 0) lo = Real(0, kVarianceBits);
  return rounded_between(type, lo, hi, false);
}

}  // namespace chainfold::test
