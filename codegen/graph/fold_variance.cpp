// The variance: states of moments (count, mean, sum of squared deviations), merged by Chan, Golub
// and LeVeque's formula.
#include <limits>
#include <vector>

#include "chainfold/codegen/graph/fold_parts.hpp"

namespace chainfold::codegen {

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

/// squares / count as a `type`, and, if that is narrower, in f64; NaN of nothing.
Lambda moments_finalize(const std::vector<DType>& state, DType type) {
  Lambda f;
  f.params = state;
  const int squares = static_cast<int>(state.size()) - 1;
  const int none = f.apply(Op::eq, {0, f.constant(DType::i64, 0)});
  const int nothing =
      f.constant(DType::f64, bits_of_double(DType::f64, std::numeric_limits<double>::quiet_NaN()));
  const int mean = f.apply(Op::div, {squares, f.convert(0, DType::f64)});
  const int wide = f.apply(Op::select, {none, nothing, mean});
  f.results = {f.convert(wide, type)};
  if (type != DType::f64) f.results.push_back(wide);
  return f;
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

/// Squares of halved deviations below kFar are added up as they are. Other halved deviations are
/// scaled by kNear before they are squared, and their squares have a sum of their own (far).
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

}  // namespace chainfold::codegen
