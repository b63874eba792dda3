// Sums and the mean. Those of floats keep what rounding takes away (TwoSum), and those of f64 also
// what is too large to be added up as it is.
#include "chainfold/codegen/graph/fold_sum.hpp"

#include <limits>
#include <vector>

#include "chainfold/codegen/graph/fold_parts.hpp"

namespace chainfold::codegen {

namespace {

/// The sum of elements below kLarge does not leave an f64's range, however many there are. Other
/// elements are scaled by kDown and added up by themselves.
constexpr double kLarge = 0x1p900, kDown = 0x1p-128, kUp = 0x1p128;
/// Sums up to here may be merged as if they were of such elements.
constexpr double kMostSum = 0x1p960;

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

/// Below, what a division leaves has fewer digits than its quotient needs, unless that is subnormal
/// itself: then it is exact.
constexpr double kSmall = 0x1p-900, kLeastNormal = 0x1p-1022;

/// (high + low) / n to twice an f64's digits, rounded; where that is not finite, the plain
/// quotient.
int quotient(Lambda& f, Pair of, int n) {
  const int size = f.apply(Op::abs, {of.high});
  const int is_normal = f.apply(Op::ge, {size, f.apply(Op::mul, {n, real(f, kLeastNormal)})});
  const int is_small = f.apply(Op::bit_and, {f.apply(Op::lt, {size, real(f, kSmall)}), is_normal});
  const auto scale = [&](double by) {
    return f.apply(Op::select, {is_small, real(f, by), real(f, 1)});
  };
  const int up = scale(kUp);
  const Pair sum{.high = f.apply(Op::mul, {of.high, up}), .low = f.apply(Op::mul, {of.low, up})};
  const int total = f.apply(Op::add, {sum.high, sum.low});
  const int rest = f.apply(Op::sub, {sum.low, f.apply(Op::sub, {total, sum.high})});
  const int first = f.apply(Op::div, {total, n});
  const int left = f.apply(Op::fma, {f.apply(Op::neg, {first}), n, total});
  const int more = f.apply(Op::div, {f.apply(Op::add, {left, rest}), n});
  return f.apply(Op::mul, {f.apply(Op::add, {first, if_finite(f, more)}), scale(kDown)});
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

}  // namespace chainfold::codegen
