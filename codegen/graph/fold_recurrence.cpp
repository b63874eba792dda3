// Linear recurrences. A state is what a run of elements does to the value before it: a product and
// a value. Each of the two has an exponent of its own.
#include "chainfold/codegen/graph/fold_recurrence.hpp"

#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold_parts.hpp"

namespace chainfold::codegen {

namespace {

/// Exponents count in 2^512. Numbers between kLeast and kMost and 0 need none; products of two of
/// those have no more than one too many or too few.
constexpr double kUp = 0x1p512, kDown = 0x1p-512, kMost = 0x1p256, kLeast = 0x1p-256;
/// Far below a number that is added to it, so that it matters as little as what it stands for.
constexpr double kNothing = 0x1p-1000;
/// Exponents stay within, and a sum that is 0 has one below all others.
constexpr int kFarthest = 1 << 29, kOfZero = -(1 << 30);

/// A number of any size: (high + low) 2^(512 exponent). Without a low part it is that of an f64.
struct Scaled {
  int high = -1, low = -1, exponent = -1;
};

/// Writes a lambda on such numbers, of one f64 or of two.
class Arithmetic {
 public:
  Arithmetic(Lambda& lambda, bool pairs) : l_(lambda), pairs_(pairs) {}

  int whole(int value) { return l_.constant(DType::i32, bits_of_int(DType::i32, value)); }
  int number(double value) { return real(l_, value); }
  int apply(Op op, int a, int b) { return l_.apply(op, {a, b}); }
  int choose(int condition, int a, int b) { return l_.apply(Op::select, {condition, a, b}); }
  int is_zero(int value) { return apply(Op::eq, value, number(0)); }

  /// An f64 that is not -0.
  Scaled from(int value) {
    Scaled v{.high = value, .low = -1, .exponent = whole(0)};
    if (pairs_) v.low = number(0);
    return v;
  }
  /// The same number with an exponent that leaves the rest between kLeast and kMost, if it was one
  /// too large or small.
  Scaled normalised(const Scaled& v) {
    const int size = l_.apply(Op::abs, {v.high});
    const int large = apply(Op::gt, size, number(kMost));
    const int small =
        apply(Op::bit_and, apply(Op::lt, size, number(kLeast)), apply(Op::gt, size, number(0)));
    const int scale = choose(large, number(kDown), choose(small, number(kUp), number(1)));
    const int step = choose(large, whole(1), choose(small, whole(-1), whole(0)));
    return scaled(v, scale, apply(Op::add, v.exponent, step));
  }
  /// A sum's, which is below all others if it is 0.
  Scaled with_zero(Scaled v) {
    v.exponent = choose(is_zero(v.high), whole(kOfZero), v.exponent);
    return v;
  }
  Scaled product(const Scaled& a, const Scaled& b) {
    const int sum = apply(Op::add, a.exponent, b.exponent);
    const int exponent = apply(Op::max, apply(Op::min, sum, whole(kFarthest)), whole(-kFarthest));
    const int high = apply(Op::mul, a.high, b.high);
    if (!pairs_) return {.high = high, .low = -1, .exponent = exponent};
    const int rounded = l_.apply(Op::fma, {a.high, b.high, l_.apply(Op::neg, {high})});
    const int crossed = l_.apply(Op::fma, {a.high, b.low, apply(Op::mul, a.low, b.high)});
    return pair(high, apply(Op::add, rounded, crossed), exponent);
  }
  /// Of numbers with exponents of with_zero().
  Scaled sum(const Scaled& a, const Scaled& b) {
    const int apart = apply(Op::sub, a.exponent, b.exponent);
    const auto scale = [&](int behind) {  // of what is so far below
      const int far = choose(apply(Op::ge, behind, whole(2)), number(kNothing), number(kDown));
      return choose(apply(Op::ge, behind, whole(1)), far, number(1));
    };
    const int exponent = apply(Op::max, a.exponent, b.exponent);
    const Scaled x = scaled(a, scale(l_.apply(Op::neg, {apart})), exponent);
    const Scaled y = scaled(b, scale(apart), exponent);
    if (!pairs_) return {.high = apply(Op::add, x.high, y.high), .low = -1, .exponent = exponent};
    const Pair both = add_pairs(l_, {.high = x.high, .low = x.low}, {.high = y.high, .low = y.low});
    return {.high = both.high, .low = both.low, .exponent = exponent};
  }
  /// As an f64, rounded once, or beyond its range.
  int value(const Scaled& v) {
    int all = pairs_ ? apply(Op::add, v.high, v.low) : v.high;
    for (int step = 1; step <= 3; ++step) {
      const int up = apply(Op::ge, v.exponent, whole(step));
      const int down = apply(Op::le, v.exponent, whole(-step));
      all = apply(Op::mul, all, choose(up, number(kUp), choose(down, number(kDown), number(1))));
    }
    return all;
  }

 private:
  Scaled scaled(const Scaled& v, int by, int exponent) {
    return {.high = apply(Op::mul, v.high, by),
            .low = pairs_ ? apply(Op::mul, v.low, by) : -1,
            .exponent = exponent};
  }
  /// high and what is below its last place, so again.
  Scaled pair(int high, int rest, int exponent) {
    const int low = if_finite(l_, rest);
    const int sum = apply(Op::add, high, low);
    const int left = if_finite(l_, apply(Op::sub, low, apply(Op::sub, sum, high)));
    return {.high = sum, .low = left, .exponent = exponent};
  }

  Lambda& l_;
  bool pairs_;
};

/// The scan of f32 whose factors are at most 1, in plain f64. No number is larger than the
/// elements' absolute sum, and what vanishes is below any f32.
Fold quick_scan(const Fold& of, const RecurrenceForm& form) {
  constexpr DType kReal = DType::f64;
  Fold fold;
  fold.name = of.name + ".quick";
  fold.commutative = false;
  fold.operands = of.operands;
  fold.given = of.given;
  fold.state = {kReal, kReal};
  fold.init = {bits_of_double(kReal, 1), 0};
  fold.lift.params = fold.operands;
  fold.lift.results = {fold.lift.convert(0, kReal), fold.lift.convert(1, kReal)};
  Lambda& m = fold.merge;
  m.params = {kReal, kReal, kReal, kReal};
  const int first = form.reverse ? 2 : 0, then = form.reverse ? 0 : 2;
  m.results = {m.apply(Op::mul, {then, first}), m.apply(Op::fma, {then, first + 1, then + 1})};
  Lambda& f = fold.finalize;
  f.params = fold.state;
  int value = 1;
  if (form.initial) {
    f.params.push_back(of.given[0]);
    value = f.apply(Op::fma, {0, f.convert(2, kReal), 1});
  }
  f.results = {f.convert(value, of.result())};
  return fold;
}

/// The value that a run leaves behind it is the scan's. Its product may be scaled up again by what
/// follows, so the product's exponent counts in 2^256. A boolean says whether some x is not 0, so
/// that a value which has decayed too far differs from none.
constexpr double kRestDown = 0x1p-256, kRestUp = 0x1p256, kVanishing = 0x1p-300;

Fold quick_rest(const Fold& of) {
  constexpr DType kReal = DType::f64, kExponent = DType::i32;
  Fold fold;
  fold.name = of.name + ".rest";
  fold.operands = of.operands;
  fold.state = {kReal, kExponent, DType::boolean};
  fold.init = {bits_of_double(kReal, 1), 0, 0};
  Lambda& lift = fold.lift;
  lift.params = fold.operands;
  const int none = lift.constant(fold.operands[1], 0);
  lift.results = {lift.convert(0, kReal), lift.constant(kExponent, 0),
                  lift.apply(Op::ne, {1, none})};
  Lambda& m = fold.merge;
  m.params = fold.state;
  m.params.insert(m.params.end(), fold.state.begin(), fold.state.end());
  Arithmetic w(m, false);
  const int product = w.apply(Op::mul, 0, 3);
  // A product of 0 is one with any exponent.
  const int small = w.apply(Op::lt, m.apply(Op::abs, {product}), w.number(kRestDown));
  const int factor = w.apply(Op::mul, product, w.choose(small, w.number(kRestUp), w.number(1)));
  const int exponent =
      w.apply(Op::add, w.apply(Op::add, 1, 4), w.choose(small, w.whole(-1), w.whole(0)));
  m.results = {factor, exponent, w.apply(Op::bit_or, 2, 5)};
  fold.finalize.params = fold.state;
  fold.finalize.results = {0};
  return fold;
}

QuickFold quick_recurrence(const Fold& of, const RecurrenceForm& form) {
  QuickFold quick{.serves = {},
                  .serves_alone = {},
                  .scans = quick_scan(of, form),
                  .narrow = of.finalize,
                  .field = 1,
                  .limit = kMost,
                  .rest = quick_rest(of),
                  .holds = {},
                  .widen = {}};
  quick.serves.params = of.operands;
  const auto below = [](Lambda& l, Op op, int operand, double limit) {
    const int bound = l.constant(DType::f32, bits_of_double(DType::f32, limit));
    return l.apply(op, {l.apply(Op::abs, {operand}), bound});  // NaN is not
  };
  quick.serves.results = {below(quick.serves, Op::le, 0, 1)};
  // A product that vanishes must not meet an infinity, which a total shows.
  Lambda& alone = quick.serves_alone = quick.serves;
  const int finite = below(alone, Op::lt, 1, std::numeric_limits<double>::infinity());
  alone.results = {alone.apply(Op::bit_and, {alone.results[0], finite})};

  // Whatever finalize gives but for its rounding, with a product of 0.
  Lambda& narrow = quick.narrow;
  const int before_rounding = narrow.steps.back().operands[0];
  narrow.results = {narrow.constant(DType::f64, 0), before_rounding};

  // A y that is small beside what it comes from may have lost digits, and be scaled up again.
  std::vector<DType> total = quick.scans.state;
  total.insert(total.end(), quick.rest.state.begin(), quick.rest.state.end());
  constexpr int kValue = 1, kFactor = 2, kExponent = 3, kSome = 4;
  Lambda& h = quick.holds;
  h.params = total;
  const int none = h.apply(Op::bit_not, {kSome}), size = h.apply(Op::abs, {kValue});
  const int stays = h.apply(Op::ge, {size, real(h, kVanishing)});
  const int ends = h.apply(Op::lt, {size, real(h, std::numeric_limits<double>::infinity())});
  h.results = {h.apply(Op::bit_or, {none, h.apply(Op::bit_and, {stays, ends})})};

  Arithmetic widen(quick.widen, false);
  quick.widen.params = total;
  // Exponents of 2^256 become those of 2^512 below them.
  const int odd = widen.apply(Op::bit_and, kExponent, widen.whole(1));
  const int is_odd = widen.apply(Op::ne, odd, widen.whole(0));
  const int factor =
      widen.apply(Op::mul, kFactor, widen.choose(is_odd, widen.number(kRestUp), widen.number(1)));
  const int exponent = widen.apply(Op::shr, kExponent, widen.whole(1));
  const int positive_zero = widen.apply(Op::add, kValue, widen.number(0));
  const Scaled sum = widen.with_zero(widen.normalised(widen.from(positive_zero)));
  quick.widen.results = {factor, exponent, sum.high, sum.exponent};
  return quick;
}

}  // namespace

Fold make_recurrence(DType type, const RecurrenceForm& form) {
  require(type == DType::f32 || type == DType::f64, "recurrence", type);
  constexpr DType kReal = DType::f64, kExponent = DType::i32;
  const bool pairs = type == DType::f64;
  Fold fold;
  fold.name = fmt::format("recurrence.{}{}{}", name_of(type), form.reverse ? ".backward" : "",
                          form.initial ? ".initial" : "");
  fold.commutative = false;
  fold.operands = {type, type};
  const std::vector<DType> number =
      pairs ? std::vector{kReal, kReal, kExponent} : std::vector{kReal, kExponent};
  const auto fields = static_cast<int>(number.size());
  fold.state = number;
  fold.state.insert(fold.state.end(), number.begin(), number.end());
  fold.init.assign(fold.state.size(), 0);
  fold.init[0] = bits_of_double(kReal, 1);
  fold.init.back() = bits_of_int(kExponent, kOfZero);
  const auto number_at = [&](int first) {
    return pairs ? Scaled{.high = first, .low = first + 1, .exponent = first + 2}
                 : Scaled{.high = first, .low = -1, .exponent = first + 1};
  };
  const auto state_of = [&](const Scaled& factor, const Scaled& value) {
    return pairs ? std::vector{factor.high, factor.low, factor.exponent,
                               value.high,  value.low,  value.exponent}
                 : std::vector{factor.high, factor.exponent, value.high, value.exponent};
  };

  Arithmetic lift(fold.lift, pairs);
  fold.lift.params = fold.operands;
  // An f64 may be two exponents away.
  const auto lifted = [&](int operand) {
    const int value =
        lift.apply(Op::add, fold.lift.convert(operand, kReal), lift.number(0));  // never -0
    const Scaled from = lift.from(value);
    return pairs ? lift.normalised(lift.normalised(from)) : from;
  };
  const Scaled factor = lifted(0);
  fold.lift.results = state_of(factor, lift.with_zero(lifted(1)));

  Lambda& m = fold.merge;
  m.params = fold.state;
  m.params.insert(m.params.end(), fold.state.begin(), fold.state.end());
  Arithmetic merge(m, pairs);
  const auto state_at = [&](int first) {
    return std::vector{number_at(first), number_at(first + fields)};
  };
  // What comes first in the recurrence's direction is what the other's factor applies to.
  const std::vector<Scaled> left = state_at(0), right = state_at(2 * fields);
  const std::vector<Scaled>&first = form.reverse ? right : left,
        &then = form.reverse ? left : right;
  const Scaled both = merge.normalised(merge.product(then[0], first[0]));
  const Scaled carried = merge.with_zero(merge.product(then[0], first[1]));
  const Scaled sum = merge.with_zero(merge.normalised(merge.sum(carried, then[1])));
  m.results = state_of(both, sum);

  Lambda& f = fold.finalize;
  f.params = fold.state;
  Arithmetic end(f, pairs);
  Scaled value = number_at(fields);
  if (form.initial) {
    fold.given = {type};
    f.params.push_back(type);
    const Scaled from = end.from(f.convert(2 * fields, kReal));
    const Scaled before = pairs ? end.normalised(end.normalised(from)) : from;
    const Scaled carried_on = end.with_zero(end.product(number_at(0), before));
    value = end.normalised(end.sum(end.with_zero(end.normalised(carried_on)), value));
  }
  f.results = {f.convert(end.value(value), type)};
  if (!pairs) fold.quick = std::make_shared<const QuickFold>(quick_recurrence(fold, form));
  return fold;
}

}  // namespace chainfold::codegen
