#include "chainfold/codegen/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>

#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {

// --- Lambda

DType Lambda::type(int value) const {
  const auto v = static_cast<std::size_t>(value);
  return v < params.size() ? params[v] : steps[v - params.size()].type;
}

int Lambda::constant(DType type, Bits bits) {
  steps.push_back({.op = Op::add, .type = type, .operands = {}, .bits = bits});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

int Lambda::apply(Op op, std::vector<int> operands) {
  const int values = static_cast<int>(params.size() + steps.size());
  bool legal = !is_cast(op) && static_cast<int>(operands.size()) == arity(op);
  for (int operand : operands) legal = legal && operand >= 0 && operand < values;
  if (!legal) throw InternalError(fmt::format("a lambda applies {} wrongly", name_of(op)));
  const DType in = type(operands.back());
  for (std::size_t i = op == Op::select ? 1 : 0; i < operands.size(); ++i) {
    legal = legal && type(operands[i]) == in;
  }
  if (op == Op::select) legal = legal && type(operands[0]) == DType::boolean;
  if (!legal || !is_defined(op, in)) {
    throw InternalError(fmt::format("a lambda applies {} to {}", name_of(op), name_of(in)));
  }
  const DType out = is_comparison(op) || op == Op::is_finite ? DType::boolean : in;
  steps.push_back({.op = op, .type = out, .operands = std::move(operands), .bits = 0});
  return values;
}

int Lambda::convert(int value, DType to) {
  if (type(value) == to) return value;
  steps.push_back({.op = Op::convert, .type = to, .operands = {value}, .bits = 0});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

std::vector<Bits> evaluate(const Lambda& lambda, std::span<const Bits> arguments) {
  if (arguments.size() != lambda.params.size()) {
    throw InternalError(fmt::format("a lambda of {} parameters is called with {}",
                                    lambda.params.size(), arguments.size()));
  }
  std::vector<Bits> values(arguments.begin(), arguments.end());
  for (const Lambda::Step& step : lambda.steps) {
    if (step.operands.empty()) {
      values.push_back(step.bits);
      continue;
    }
    Bits in[3] = {};
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      in[i] = values[static_cast<std::size_t>(step.operands[i])];
    }
    const DType type = lambda.type(step.operands.back());
    values.push_back(evaluate(step.op, type, step.type, in[0], in[1], in[2]));
  }
  std::vector<Bits> results;
  for (int result : lambda.results) results.push_back(values[static_cast<std::size_t>(result)]);
  return results;
}

// --- the built-in folds

namespace {

Lambda identity(DType type) { return {.params = {type}, .steps = {}, .results = {0}}; }

/// A fold whose state is the value itself and whose merge is one operation.
Fold plain(std::string_view name, DType type, Op op, Bits neutral) {
  Fold fold;
  fold.name = fmt::format("{}.{}", name, name_of(type));
  fold.operands = fold.state = {type};
  fold.init = {neutral};
  fold.lift = fold.finalize = identity(type);
  fold.merge.params = {type, type};
  fold.merge.results = {fold.merge.apply(op, {0, 1})};
  fold.tile = op;
  fold.tile_identity = neutral;
  return fold;
}

/// The end of the type's range at which max (lowest) or min (highest) starts.
Bits range_end(DType type, bool highest) {
  if (is_float(type)) {
    const double inf = std::numeric_limits<double>::infinity();
    return bits_of_double(type, highest ? inf : -inf);
  }
  const int width = 8 * size_of(type);
  const Bits ones = width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
  const Bits top = Bits{1} << (width - 1);
  if (is_signed(type)) return highest ? ones ^ top : top;
  return highest ? ones : 0;
}

void require(bool legal, std::string_view fold, DType type) {
  if (!legal) throw InternalError(fmt::format("no {} in {}", fold, name_of(type)));
}

/// a + b, rounded, and what rounding took away (Knuth's TwoSum).
struct TwoSum {
  int sum, error;
};
TwoSum two_sum(Lambda& lambda, int a, int b) {
  auto sub = [&lambda](int from, int v) { return lambda.apply(Op::sub, {from, v}); };
  const int sum = lambda.apply(Op::add, {a, b});
  const int right = sub(sum, a);
  const int left_error = sub(a, sub(sum, right));
  return {.sum = sum, .error = lambda.apply(Op::add, {left_error, sub(b, right)})};
}

int if_finite(Lambda& lambda, int value) {
  const int none = lambda.constant(lambda.type(value), 0);
  return lambda.apply(Op::select, {lambda.apply(Op::is_finite, {value}), value, none});
}

/// high + low, a sum.
struct Pair {
  int high, low;
};
Pair add_pairs(Lambda& m, Pair a, Pair b) {
  const TwoSum both = two_sum(m, a.high, b.high);
  // Where the sum is not finite its error is NaN, which must not reach the high part.
  const int rest = m.apply(Op::add, {both.error, m.apply(Op::add, {a.low, b.low})});
  const int low = if_finite(m, rest);
  // Renormalised, so that the low parts' own rounding errors stay of second order.
  const int high = m.apply(Op::add, {both.sum, low});
  const int taken = m.apply(Op::sub, {high, both.sum});
  return {.high = high, .low = if_finite(m, m.apply(Op::sub, {low, taken}))};
}

/// What elements up to 2^kLargeExponent are added up to does not leave an f64's range, however many
/// there are; others are scaled by 2^-kScaleExponent and added up by themselves.
constexpr double kLarge = 0x1p900, kDown = 0x1p-128, kUp = 0x1p128;
/// Sums up to here may be merged as if they were of such elements.
constexpr double kMostSum = 0x1p960;

int real(Lambda& lambda, double value) {
  return lambda.constant(DType::f64, bits_of_double(DType::f64, value));
}

/// An f64 as a pair of what is large and what is not, one of which is 0 (never -0).
Pair by_size(Lambda& lift, int value) {
  const int zero = real(lift, 0), size = lift.apply(Op::abs, {value});
  const int is_large = lift.apply(Op::ge, {size, real(lift, kLarge)});
  const int scaled = lift.apply(Op::mul, {value, real(lift, kDown)});
  return {.high = lift.apply(Op::select, {is_large, scaled, zero}),
          .low = lift.apply(Op::add, {lift.apply(Op::select, {is_large, zero, value}), zero})};
}

/// Of f32, whose sums no number of them leads out of an f64's range.
Fold short_sum() {
  Fold fold;
  fold.name = "sum.f32";
  fold.operands = {DType::f32};
  fold.state = {DType::f64};
  fold.init = {0};
  fold.lift.params = fold.operands;
  const int zero = real(fold.lift, 0);  // no state is -0
  fold.lift.results = {fold.lift.apply(Op::add, {fold.lift.convert(0, DType::f64), zero})};
  fold.merge.params = {DType::f64, DType::f64};
  fold.merge.results = {fold.merge.apply(Op::add, {0, 1})};
  Lambda& a = fold.accumulate.emplace();
  a.params = {DType::f64, DType::f32};
  a.results = {a.apply(Op::add, {0, a.convert(1, DType::f64)})};
  fold.finalize.params = fold.state;
  fold.finalize.results = {fold.finalize.convert(0, DType::f32), 0};
  fold.guard = {.field = 0, .limit = std::numeric_limits<double>::infinity()};
  return fold;
}

/// Two f64 (high, low) with high + low the sum and |low| at most half an ulp of high. A field is
/// never -0 and low is 0 where high is not finite; lift establishes that and merge keeps it. Then
/// (0, 0) is an identity bit for bit.
Fold pair_sum() {
  constexpr DType kIn = DType::f64;
  Fold fold;
  fold.name = "sum.f64.pair";
  fold.operands = {kIn};
  fold.state = {kIn, kIn};
  fold.init = {0, 0};

  Lambda& lift = fold.lift;
  lift.params = {kIn};
  const int zero = real(lift, 0);
  lift.results = {lift.apply(Op::add, {0, zero}), zero};

  Lambda& m = fold.merge;
  m.params = {kIn, kIn, kIn, kIn};
  const Pair pair = add_pairs(m, {.high = 0, .low = 1}, {.high = 2, .low = 3});
  m.results = {pair.high, pair.low};

  Lambda& a = fold.accumulate.emplace();
  a.params = {kIn, kIn, kIn};
  const TwoSum next = two_sum(a, 0, a.apply(Op::add, {2, 1}));
  a.results = {next.sum, if_finite(a, next.error)};

  fold.finalize.params = fold.state;
  fold.finalize.results = {fold.finalize.apply(Op::add, {0, 1})};
  return fold;
}

/// The same of what is not large, and once more of what is.
Fold long_sum() {
  constexpr DType kIn = DType::f64;
  Fold fold = pair_sum();
  fold.name = "sum.f64";
  fold.state = {kIn, kIn, kIn, kIn};
  fold.init = {0, 0, 0, 0};

  Lambda& lift = fold.lift;
  lift = {};
  lift.params = {kIn};
  const Pair sizes = by_size(lift, 0);
  const int zero = real(lift, 0);
  lift.results = {sizes.low, zero, sizes.high, zero};

  Lambda& m = fold.merge;
  m = {};
  m.params = std::vector<DType>(8, kIn);
  const Pair small = add_pairs(m, {.high = 0, .low = 1}, {.high = 4, .low = 5});
  const Pair large = add_pairs(m, {.high = 2, .low = 3}, {.high = 6, .low = 7});
  m.results = {small.high, small.low, large.high, large.low};

  Lambda& a = *fold.accumulate;  // of values that are not large
  a = {};
  a.params = std::vector<DType>(5, kIn);
  const TwoSum next = two_sum(a, 0, a.apply(Op::add, {4, 1}));
  a.results = {next.sum, if_finite(a, next.error), 2, 3};

  Lambda& f = fold.finalize;
  f = {};
  f.params = fold.state;
  const int ordinary = f.apply(Op::add, {0, 1}), scaled = f.apply(Op::add, {2, 3});
  const int all = f.apply(Op::fma, {ordinary, real(f, kDown), scaled});
  const int none = f.apply(Op::eq, {scaled, real(f, 0)});
  f.results = {f.apply(Op::select, {none, ordinary, f.apply(Op::mul, {all, real(f, kUp)})})};
  fold.guard = {.field = 0, .limit = kMostSum};
  return fold;
}

Fold float_sum(DType type) {
  Fold fold = type == DType::f32 ? short_sum() : long_sum();
  fold.tile = Op::add;
  fold.tile_identity = 0;
  fold.linear = true;
  return fold;
}

/// (high + low) / n to twice an f64's digits, rounded; where that is not finite, the plain
/// quotient.
int quotient(Lambda& f, Pair sum, int n) {
  const int total = f.apply(Op::add, {sum.high, sum.low});
  const int rest = f.apply(Op::sub, {sum.low, f.apply(Op::sub, {total, sum.high})});
  const int first = f.apply(Op::div, {total, n});
  const int left = f.apply(Op::fma, {f.apply(Op::neg, {first}), n, total});
  const int more = f.apply(Op::div, {f.apply(Op::add, {left, rest}), n});
  return f.apply(Op::add, {first, if_finite(f, more)});
}

}  // namespace

Fold make_running_sum(DType type) {
  if (type != DType::f64) return make_sum(type);
  Fold fold = pair_sum();
  fold.tile = Op::add;
  fold.tile_identity = 0;
  fold.linear = true;
  return fold;
}

Fold make_mean() {
  constexpr DType kCount = DType::i64, kIn = DType::f64;
  Fold fold;
  fold.name = "mean.f64";
  fold.counts = true;
  fold.operands = {kIn};
  fold.state = {kCount, kIn, kIn, kIn, kIn};
  fold.init = {0, 0, 0, 0, 0};

  Lambda& lift = fold.lift;
  lift.params = {kIn};
  const int one = lift.constant(kCount, 1), zero = real(lift, 0);
  const Pair sizes = by_size(lift, 0);
  lift.results = {one, sizes.low, zero, sizes.high, zero};

  Lambda& m = fold.merge;
  m.params = fold.state;
  m.params.insert(m.params.end(), fold.state.begin(), fold.state.end());
  const int elements = m.apply(Op::add, {0, 5});
  const Pair small = add_pairs(m, {.high = 1, .low = 2}, {.high = 6, .low = 7});
  const Pair large = add_pairs(m, {.high = 3, .low = 4}, {.high = 8, .low = 9});
  m.results = {elements, small.high, small.low, large.high, large.low};

  // Of elements that are not large. What rounding takes away is kept apart, and is NaN once the sum
  // is not finite.
  Lambda& a = fold.accumulate.emplace();
  a.params = {kCount, kIn, kIn, kIn, kIn, kIn};
  const int more = a.apply(Op::add, {0, a.constant(kCount, 1)});
  const TwoSum next = two_sum(a, 1, 5);
  a.results = {more, next.sum, a.apply(Op::add, {2, next.error}), 3, 4};

  Lambda& f = fold.finalize;
  f.params = fold.state;
  const int n = f.convert(0, kIn), down = real(f, kDown);
  const Pair ordinary{.high = 1, .low = if_finite(f, 2)};
  // Where there are large elements, all are scaled as they are.
  const TwoSum both = two_sum(f, 3, f.apply(Op::mul, {ordinary.high, down}));
  const int lows = f.apply(Op::fma, {ordinary.low, down, f.apply(Op::add, {4, both.error})});
  const Pair scaled{.high = both.sum, .low = if_finite(f, lows)};
  const int without = f.apply(Op::eq, {f.apply(Op::add, {3, 4}), real(f, 0)});
  const int plain = quotient(f, ordinary, n);
  const int mean = f.apply(
      Op::select, {without, plain, f.apply(Op::mul, {quotient(f, scaled, n), real(f, kUp)})});
  const int none = f.apply(Op::eq, {0, f.constant(kCount, 0)});
  const int nothing = real(f, std::numeric_limits<double>::quiet_NaN());
  f.results = {f.apply(Op::select, {none, nothing, mean})};
  fold.guard = {.field = 1, .limit = kMostSum};
  return fold;
}

Fold make_sum(DType type) {
  require(type == sum_type(type) || type == DType::i32, "sum", type);
  if (is_float(type)) return float_sum(type);
  Fold fold = plain("sum", type, Op::add, 0);
  fold.linear = true;
  return fold;
}

Fold by_elements(Fold fold) {
  fold.name += ".by_elements";
  fold.tile.reset();
  fold.accumulate.reset();
  fold.guard.reset();
  fold.moments = fold.linear = false;
  return fold;
}

Fold make_min(DType type) {
  require(is_defined(Op::min, type), "min", type);
  return plain("min", type, Op::min, range_end(type, true));
}

Fold make_max(DType type) {
  require(is_defined(Op::max, type), "max", type);
  return plain("max", type, Op::max, range_end(type, false));
}

Fold make_any() { return plain("any", DType::boolean, Op::bit_or, 0); }
Fold make_all() { return plain("all", DType::boolean, Op::bit_and, 1); }

namespace {

/// The merge of moments by Chan, Golub and LeVeque's formula, once the counts and the difference of
/// the means are known.
struct Moments {
  int count, mean, squares;
};
Moments merge_moments(Lambda& m, const Moments& a, const Moments& b, int delta) {
  constexpr DType kCount = DType::i64;
  const DType type = m.type(a.mean);
  auto apply = [&m](Op op, int x, int y) { return m.apply(op, {x, y}); };
  const int none = m.constant(kCount, 0);
  const int count = apply(Op::add, a.count, b.count);
  const int weight = m.convert(b.count, type), total = m.convert(count, type);
  const int share = apply(Op::div, weight, total);
  const int factor = apply(Op::mul, m.convert(a.count, type), share);  // of counts alone
  const int mean = m.apply(Op::fma, {delta, share, a.mean});
  const int within = apply(Op::add, a.squares, b.squares);
  const int squares = m.apply(Op::fma, {apply(Op::mul, delta, factor), delta, within});
  const int empty_a = apply(Op::eq, a.count, none), empty_b = apply(Op::eq, b.count, none);
  // The formula is no exact identity for an empty side (and 0 / 0 for two): the other side counts.
  auto choose = [&](int x, int y, int both) {
    return m.apply(Op::select, {empty_b, x, m.apply(Op::select, {empty_a, y, both})});
  };
  return {.count = count,
          .mean = choose(a.mean, b.mean, mean),
          .squares = choose(a.squares, b.squares, squares)};
}

/// Of (count, mean, squares) in `type`.
Lambda moments_merge(DType type) {
  Lambda m;
  m.params = {DType::i64, type, type, DType::i64, type, type};
  const Moments a{.count = 0, .mean = 1, .squares = 2}, b{.count = 3, .mean = 4, .squares = 5};
  const Moments both = merge_moments(m, a, b, m.apply(Op::sub, {b.mean, a.mean}));
  m.results = {both.count, both.mean, both.squares};
  return m;
}

/// squares / count as a `type`, NaN of nothing.
Lambda moments_finalize(const std::vector<DType>& state, DType type) {
  Lambda f;
  f.params = state;
  const int squares = static_cast<int>(state.size()) - 1;
  const int none = f.apply(Op::eq, {0, f.constant(DType::i64, 0)});
  const int nothing =
      f.constant(DType::f64, bits_of_double(DType::f64, std::numeric_limits<double>::quiet_NaN()));
  const int mean = f.apply(Op::div, {squares, f.convert(0, DType::f64)});
  f.results = {f.convert(f.apply(Op::select, {none, nothing, mean}), type)};
  return f;
}

/// b - a of i64 as an f64, rounded once: differences of up to 2^63 are exact before.
int difference(Lambda& m, int a, int b) {
  auto apply = [&m](Op op, int x, int y) { return m.apply(op, {x, y}); };
  const int wrapped = apply(Op::sub, b, a);
  const int other_signs = apply(Op::bit_xor, a, b), left = apply(Op::bit_xor, wrapped, b);
  const int wraps = apply(Op::lt, apply(Op::bit_and, other_signs, left), m.constant(DType::i64, 0));
  const int wide = apply(Op::sub, m.convert(b, DType::f64), m.convert(a, DType::f64));
  return m.apply(Op::select, {wraps, wide, m.convert(wrapped, DType::f64)});
}

Fold integer_variance() {
  constexpr DType kIn = DType::i64, kReal = DType::f64;
  Fold fold;
  fold.name = "variance.i64";
  fold.operands = {kIn};
  fold.state = {DType::i64, kIn, kReal, kReal};
  fold.init = {0, 0, 0, 0};
  fold.moments = fold.counts = true;
  fold.merge_near = moments_merge(kReal);

  fold.lift.params = {kIn};
  const int one = fold.lift.constant(DType::i64, 1), zero = fold.lift.constant(kReal, 0);
  fold.lift.results = {one, 0, zero, zero};

  Lambda& m = fold.merge;
  m.params = {DType::i64, kIn, kReal, kReal, DType::i64, kIn, kReal, kReal};
  constexpr int kCountA = 0, kBaseA = 1, kMeanA = 2, kCountB = 4, kBaseB = 5, kMeanB = 6;
  // Both means from a's base; from b's where there is nothing in a.
  const int apart = difference(m, kBaseA, kBaseB);
  const int moved = m.apply(Op::add, {apart, kMeanB});
  const int delta = m.apply(Op::sub, {moved, kMeanA});
  const int empty_a = m.apply(Op::eq, {kCountA, m.constant(DType::i64, 0)});
  const Moments both = merge_moments(m, {.count = kCountA, .mean = kMeanA, .squares = 3},
                                     {.count = kCountB, .mean = kMeanB, .squares = 7}, delta);
  const int base = m.apply(Op::select, {empty_a, kBaseB, kBaseA});
  m.results = {both.count, base, both.mean, both.squares};
  fold.finalize = moments_finalize(fold.state, kReal);
  return fold;
}

}  // namespace

namespace {

/// Squares of deviations of up to kFar are added up as they are; others are scaled by kNear before
/// they are squared, which their sum tells apart.
constexpr double kFar = 0x1p400, kNear = 0x1p-600, kBack = 0x1p601;

/// Of f64: (count, far, base, mean from there, squares).
Fold long_variance() {
  constexpr DType kIn = DType::f64;
  Fold fold;
  fold.name = "variance.f64";
  fold.operands = {kIn};
  fold.state = {DType::i64, kIn, kIn, kIn, kIn};
  fold.init = {0, 0, 0, 0, 0};
  fold.moments = fold.counts = true;
  fold.merge_near = moments_merge(kIn);

  // x - x is 0, or NaN where x has no deviation from itself.
  Lambda& lift = fold.lift;
  lift.params = {kIn};
  const int one = lift.constant(DType::i64, 1), zero = real(lift, 0);
  lift.results = {one, zero, 0, zero, lift.apply(Op::sub, {0, 0})};

  Lambda& m = fold.merge;
  m.params = fold.state;
  m.params.insert(m.params.end(), fold.state.begin(), fold.state.end());
  auto apply = [&m](Op op, int x, int y) { return m.apply(op, {x, y}); };
  constexpr int kCountA = 0, kFarA = 1, kBaseA = 2, kMeanA = 3, kSquaresA = 4, kCountB = 5,
                kFarB = 6, kBaseB = 7, kMeanB = 8, kSquaresB = 9;
  const int none = m.constant(DType::i64, 0), half = real(m, 0.5), no = real(m, 0);
  const int count = apply(Op::add, kCountA, kCountB);
  const int share = apply(Op::div, m.convert(kCountB, kIn), m.convert(count, kIn));
  const int factor = apply(Op::mul, m.convert(kCountA, kIn), share);
  // Halves of differences, which the whole ones may overflow; both means from a's base.
  const auto halved = [&](int a, int b) {
    return apply(Op::sub, apply(Op::mul, b, half), apply(Op::mul, a, half));
  };
  const int delta = apply(Op::add, halved(kBaseA, kBaseB), halved(kMeanA, kMeanB));
  const int mean = m.apply(Op::fma, {delta, apply(Op::add, share, share), kMeanA});
  const int is_far = apply(Op::ge, m.apply(Op::abs, {delta}), real(m, kFar));
  const int near = m.apply(Op::select, {is_far, no, delta});
  const int scaled = apply(Op::mul, m.apply(Op::select, {is_far, delta, no}), real(m, kNear));
  const int squares = m.apply(Op::fma, {apply(Op::mul, apply(Op::mul, near, real(m, 4)), factor),
                                        near, apply(Op::add, kSquaresA, kSquaresB)});
  const int far =
      m.apply(Op::fma, {apply(Op::mul, scaled, factor), scaled, apply(Op::add, kFarA, kFarB)});
  const int empty_a = apply(Op::eq, kCountA, none), empty_b = apply(Op::eq, kCountB, none);
  auto choose = [&](int a, int b, int both) {
    return m.apply(Op::select, {empty_b, a, m.apply(Op::select, {empty_a, b, both})});
  };
  const int base = m.apply(Op::select, {empty_a, kBaseB, kBaseA});
  m.results = {count, choose(kFarA, kFarB, far), base, choose(kMeanA, kMeanB, mean),
               choose(kSquaresA, kSquaresB, squares)};

  Lambda& f = fold.finalize;
  f.params = fold.state;
  const int n = f.convert(0, kIn), back = real(f, kBack);
  const int far_mean = f.apply(Op::mul, {f.apply(Op::mul, {f.apply(Op::div, {1, n}), back}), back});
  const int variance = f.apply(Op::add, {f.apply(Op::div, {4, n}), far_mean});
  const int nothing = real(f, std::numeric_limits<double>::quiet_NaN());
  const int is_empty = f.apply(Op::eq, {0, f.constant(DType::i64, 0)});
  f.results = {f.apply(Op::select, {is_empty, nothing, variance})};
  fold.guard = {.field = 4, .limit = std::numeric_limits<double>::infinity()};
  return fold;
}

}  // namespace

Fold make_variance(DType type) {
  if (type == DType::i64) return integer_variance();
  if (type == DType::f64) return long_variance();
  require(type == DType::f32, "variance", type);
  Fold fold;
  fold.name = "variance.f32";
  fold.operands = {type};
  fold.state = {DType::i64, DType::f64, DType::f64};
  fold.init = {0, 0, 0};
  fold.moments = fold.counts = true;
  fold.merge_near = moments_merge(type);

  Lambda& lift = fold.lift;
  lift.params = {type};
  const int one = lift.constant(DType::i64, 1);
  lift.results = {one, lift.convert(0, DType::f64),
                  lift.convert(lift.apply(Op::sub, {0, 0}), DType::f64)};
  fold.merge = moments_merge(DType::f64);
  fold.finalize = moments_finalize(fold.state, type);
  fold.guard = {.field = 2, .limit = std::numeric_limits<double>::infinity()};
  return fold;
}

Fold make_product(DType type) {
  require(type == sum_type(type), "product", type);
  Fold fold = plain("product", type, Op::mul, bits_of_int(type, 1));
  if (is_float(type)) fold.tile.reset();  // its rounding depends on the order: not exact
  return fold;
}

Fold make_bits(Op op, DType type) {
  const bool known = op == Op::bit_and || op == Op::bit_or || op == Op::bit_xor;
  require(known && is_defined(op, type), "fold of bits", type);
  const Bits ones = evaluate(Op::bit_not, type, type, 0);
  return plain(name_of(op), type, op, op == Op::bit_and ? ones : 0);
}

namespace {

/// States (best, its index); no index is above that of nothing.
Fold arg_fold(std::string_view name, DType type, bool largest) {
  constexpr DType kIndex = DType::i64;
  const Bits none = range_end(kIndex, true);
  Fold fold;
  fold.name = fmt::format("{}.{}", name, name_of(type));
  fold.operands = fold.state = {type, kIndex};
  fold.init = {range_end(type, !largest), none};
  fold.lift.params = fold.state;
  fold.lift.results = {0, 1};

  Lambda& m = fold.merge;
  m.params = {type, kIndex, type, kIndex};
  auto apply = [&m](Op op, int a, int b) { return m.apply(op, {a, b}); };
  constexpr int kA = 0, kIndexA = 1, kB = 2, kIndexB = 3;
  int better = apply(largest ? Op::gt : Op::lt, kB, kA), same = apply(Op::eq, kA, kB);
  if (is_float(type)) {
    const int number_a = apply(Op::eq, kA, kA), nan_b = apply(Op::ne, kB, kB);
    better = apply(Op::bit_or, better, apply(Op::bit_and, number_a, nan_b));
    const int nan_a = m.apply(Op::bit_not, {number_a});
    same = apply(Op::bit_or, same, apply(Op::bit_and, nan_a, nan_b));
  }
  const int earlier = apply(Op::lt, kIndexB, kIndexA);
  const int take = apply(Op::bit_or, better, apply(Op::bit_and, same, earlier));
  m.results = {m.apply(Op::select, {take, kB, kA}), m.apply(Op::select, {take, kIndexB, kIndexA})};

  Lambda& finalize = fold.finalize;
  finalize.params = fold.state;
  const int nothing = finalize.apply(Op::eq, {1, finalize.constant(kIndex, none)});
  const int minus_one = finalize.constant(kIndex, bits_of_int(kIndex, -1));
  finalize.results = {finalize.apply(Op::select, {nothing, minus_one, 1})};
  return fold;
}

}  // namespace

Fold make_argmin(DType type) {
  require(is_defined(Op::min, type), "argmin", type);
  return arg_fold("argmin", type, false);
}

Fold make_argmax(DType type) {
  require(is_defined(Op::max, type), "argmax", type);
  return arg_fold("argmax", type, true);
}

Fold make_logsumexp(DType type) {
  require(type == DType::f32 || type == DType::f64, "logsumexp", type);
  Fold fold;
  fold.name = fmt::format("logsumexp.{}", name_of(type));
  fold.operands = {type};
  fold.state = {type, type};
  fold.init = {range_end(type, false), 0};
  fold.lift.params = {type};
  const int one = fold.lift.constant(type, bits_of_int(type, 1));
  fold.lift.results = {0, one};

  Lambda& m = fold.merge;
  m.params = {type, type, type, type};
  constexpr int kTopA = 0, kSumA = 1, kTopB = 2, kSumB = 3;
  const int top = m.apply(Op::max, {kTopA, kTopB}), low = m.apply(Op::min, {kTopA, kTopB});
  // Equal ones scale by 1, also where they are infinite and their difference is NaN.
  const int scale =
      m.apply(Op::select, {m.apply(Op::eq, {low, top}), m.constant(type, bits_of_int(type, 1)),
                           m.apply(Op::exp, {m.apply(Op::sub, {low, top})})});
  const int first = m.apply(Op::ge, {kTopA, kTopB});
  const int larger = m.apply(Op::select, {first, kSumA, kSumB});
  const int smaller = m.apply(Op::select, {first, kSumB, kSumA});
  m.results = {top, m.apply(Op::fma, {smaller, scale, larger})};

  Lambda& finalize = fold.finalize;
  finalize.params = fold.state;
  finalize.results = {finalize.apply(Op::add, {0, finalize.apply(Op::log, {1})})};
  return fold;
}

// --- a user's own

Fold make_monoid(MonoidParts parts) {
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (parts.name.empty() || !std::all_of(parts.name.begin(), parts.name.end(), is_word)) {
    throw UserError(
        ErrorCode::invalid_argument,
        fmt::format("a monoid is named \"{}\"; use letters, digits and underscores", parts.name),
        parts.name);
  }
  std::vector<Bits> twice = parts.init;
  twice.insert(twice.end(), parts.init.begin(), parts.init.end());
  const std::vector<Bits> merged = evaluate(parts.merge, twice);
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const DType type = parts.state[i];
    auto is_nan = [&](Bits bits) {
      return is_float(type) && std::isnan(double_of_bits(type, bits));
    };
    if (merged[i] == parts.init[i] || (is_nan(merged[i]) && is_nan(parts.init[i]))) continue;
    throw UserError(
        ErrorCode::invalid_argument,
        fmt::format("the initial state of the monoid {} is no identity: merged with itself its "
                    "field {} becomes {} instead of {}; merge must leave a state as it is when the "
                    "other one is the initial state",
                    parts.name, i, text_of_bits(type, merged[i]),
                    text_of_bits(type, parts.init[i])),
        parts.name);
  }
  Fold fold;
  fold.name = std::move(parts.name);
  fold.operands = std::move(parts.operands);
  fold.state = std::move(parts.state);
  fold.init = std::move(parts.init);
  fold.lift = std::move(parts.lift);
  fold.merge = std::move(parts.merge);
  fold.finalize = std::move(parts.finalize);
  fold.commutative = parts.commutative;
  // Equal names are equal folds: two monoids of one name may differ in anything else.
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, the same on every machine
  for (const char c : print(fold)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  fold.name += fmt::format(".{:016x}", hash);
  return fold;
}

}  // namespace chainfold::codegen
