// Element-wise operations. Their exact meaning stands in codegen/base/ops.hpp.
//
// Types. Both operands enter their compute type: f32 for f16 and bf16, i32 for integers below 32
// bits. Then both enter the smallest type that holds both. So an integer of more than 16 bits
// beside an f32 gives f64. u64 beside a signed integer has no such type and is refused. Comparisons
// give bool. Shifts have the type of their left operand. Integers wrap; x / 0 is 0, x % 0 is x.
//
// Levels. A parameter or a literal goes with anything. An operand with one value an element goes
// with cf::count(). Where it depends on a scan, it goes with folds, too: a fold's value is
// broadcast to the elements of its segment. Beside a fold any other operand with one value an
// element is refused.
#pragma once

#include <type_traits>
#include <utility>

#include "chainfold/codegen/base/element_rule.hpp"
#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/literal.hpp"

namespace chainfold {
namespace dsl {

using codegen::Op;

/// What kind of operand an operation takes.
enum class Use { arithmetic, comparison, equality, logic, bitwise, shift, real };

// Rules are classes of their own, and no value is taken out of them. So every compiler reports a
// broken rule in one message.

template <Use U, DType T>
struct TypeRule {
  static constexpr bool kBool = T == DType::boolean;
  static constexpr bool kBoolInArithmetic = kBool && (U == Use::arithmetic || U == Use::comparison);
  static constexpr bool kNumberInLogic = !kBool && U == Use::logic;
  static constexpr bool kFloatInBits = is_float(T) && U == Use::bitwise;
  static constexpr bool kNoIntegerInShift = !is_integer(T) && U == Use::shift;
  static constexpr bool kNoFloat = !is_float(T) && U == Use::real;
  static_assert(
      !kBoolInArithmetic,
      "chainfold: arithmetic and order are not defined on bool; cast it to a number, e.g. "
      "cf::cast<std::int32_t>(b), or use cf::select");
  static_assert(!kNumberInLogic,
                "chainfold: &&, || and ! take bool expressions; write a comparison, e.g. x != 0");
  static_assert(!kFloatInBits, "chainfold: &, | and ^ are defined on integers and bool only");
  static_assert(!kNoIntegerInShift, "chainfold: <<, >> and ~ are defined on integers only");
  static_assert(!kNoFloat,
                "chainfold: this function is of floating-point expressions; cast "
                "the integer first, e.g. cf::sqrt(cf::cast<float>(x))");
};

template <DType A, DType B>
struct CommonTypeRule {
  static constexpr bool kBoolWithNumber = (A == DType::boolean) != (B == DType::boolean);
  static constexpr bool kU64WithSigned = !kBoolWithNumber && !has_common_type(A, B);
  static_assert(!kBoolWithNumber,
                "chainfold: a bool and a number have no common type; compare the number (x != 0) "
                "or cast the bool (cf::cast<std::int32_t>(b))");
  static_assert(
      !kU64WithSigned,
      "chainfold: std::uint64_t and a signed integer have no common type; cast one of them, e.g. "
      "cf::cast<std::int64_t>(x)");
};

/// `Folded`: whether one operand has a value for the segment that holds a fold, and the other one
/// depends on no scan. Such a fold is not broadcast.
template <Level A, Level B, bool Folded>
struct LevelRule {
  static constexpr bool kTwo = A != B && A != Level::uniform && B != Level::uniform;
  static constexpr bool kForeign = kTwo && (A == Level::state || B == Level::state);
  static constexpr bool kMixed = kTwo && !kForeign && Folded;
  static_assert(
      !kForeign,
      "chainfold: an input or a fold inside a monoid; its lift, merge and finalize compute "
      "from their arguments and literals alone: give the input to cf::fold as an operand");
  static_assert(!kMixed,
                "chainfold: one operand has a value for each element, the other a value for the "
                "segment (a fold); broadcasting a fold back to the elements is supported only "
                "beside a scan, e.g. cf::inclusive_sum(x) / cf::sum(x)");
};

template <class A, class B>
void check_levels() {
  if constexpr (Expression<A> && Expression<B>) {
    using Left = std::remove_cvref_t<A>;
    using Right = std::remove_cvref_t<B>;
    constexpr bool kFolded = (Left::kLevel == Level::segment && Left::kFolds && !Right::kScans) ||
                             (Right::kLevel == Level::segment && Right::kFolds && !Left::kScans);
    (void)LevelRule<Left::kLevel, Right::kLevel, kFolded>{};
  }
}
template <class A, class B>
void check_types() {
  if constexpr (Expression<A> && Expression<B>) (void)CommonTypeRule<kTypeOf<A>, kTypeOf<B>>{};
}
template <class A, class B>
void check_pair() {
  check_levels<A, B>();
  check_types<A, B>();
}

/// The common type of the expressions among some operands, what literals beside them must fit.
template <class X, class... Rest>
constexpr DType beside() noexcept {
  if constexpr (sizeof...(Rest) == 0 || (Expression<X> && !(Expression<Rest> || ...))) {
    if constexpr (Expression<X>) {
      return kTypeOf<X>;
    } else {
      return kOwnType<X>;
    }
  } else if constexpr (!Expression<X>) {
    return beside<Rest...>();
  } else {
    return promote(kTypeOf<X>, beside<Rest...>());
  }
}

template <Use U, Op O, class A>
auto unary(A&& a) {
  constexpr DType kIn = compute_type(kTypeOf<A>);
  (void)TypeRule<U, kIn>{};
  constexpr DType kOut = codegen::is_test(O) ? DType::boolean : kIn;
  return Unary<O, kOut, kIn, std::remove_cvref_t<A>>(std::forward<A>(a));
}

template <Use U, Op O, bool ConstantRight = false, class A, class B>
auto binary(A&& a, B&& b) {
  check_pair<A, B>();
  constexpr DType kBeside = beside<A, B>();
  constexpr DType kIn = promote(kBeside, kBeside);  // its compute type
  (void)TypeRule<U, kIn>{};
  auto x = as_expression<kIn, kBeside>(std::forward<A>(a));
  auto y = as_expression<kIn, kBeside, ConstantRight>(std::forward<B>(b));
  constexpr DType kOut = codegen::is_comparison(O) ? DType::boolean : kIn;
  return Binary<O, kOut, kIn, decltype(x), decltype(y)>(std::move(x), std::move(y));
}

/// Shifts: the amount is of any integer type and does not take part in the result's.
template <Op O, class A, class B>
auto shift(A&& a, B&& b) {
  if constexpr (Expression<A> && Expression<B>) {
    check_levels<A, B>();
    (void)TypeRule<Use::shift, kTypeOf<B>>{};
    constexpr DType kIn = compute_type(kTypeOf<A>);
    (void)TypeRule<Use::shift, kIn>{};
    using Left = std::remove_cvref_t<A>;
    using Right = std::remove_cvref_t<B>;
    return Binary<O, kIn, kIn, Left, Right>(std::forward<A>(a), std::forward<B>(b));
  } else {
    return binary<Use::shift, O>(std::forward<A>(a), std::forward<B>(b));
  }
}

template <DType C>
struct ConditionRule {
  static_assert(
      C == DType::boolean,
      "chainfold: the condition of cf::select must be bool; write a comparison, e.g. x != 0");
};

/// A condition that stands where a fold takes a filter.
template <bool Is>
struct BareConditionRule {
  static_assert(!Is,
                "chainfold: a condition beside the expression of a fold; make a filter of it, "
                "e.g. cf::sum(x, cf::where(x > 0))");
};
template <bool Two>
struct ExtremeCountRule {
  static_assert(Two,
                "chainfold: cf::min and cf::max take two operands, or one to fold; of more write "
                "cf::max(cf::max(x, y), z)");
};
/// Whether A is a number for each element and B a condition on the elements, as in min(x, x > 0).
template <class A, class B>
constexpr bool is_bare_condition() {
  if constexpr (Expression<A> && Expression<B>) {
    return kLevelOf<A> == Level::element && kTypeOf<A> != DType::boolean &&
           kLevelOf<B> == Level::element && kTypeOf<B> == DType::boolean;
  } else {
    return false;
  }
}

template <DType A, DType B>
struct TwoLiteralsRule {
  static_assert(A == B, "chainfold: the two literals of cf::select must have one type");
};

template <class A, class B>
constexpr DType selected_type() noexcept {
  if constexpr (!Expression<A> && !Expression<B>) {
    return kOwnType<A>;
  } else if constexpr (!Expression<A>) {
    return literal_type(kTypeOf<B>);
  } else if constexpr (!Expression<B>) {
    return literal_type(kTypeOf<A>);
  } else {
    return kTypeOf<A> == kTypeOf<B> ? kTypeOf<A> : promote(kTypeOf<A>, kTypeOf<B>);
  }
}

}  // namespace dsl

// --- arithmetic ----------------------------------------------------------------------------------

/// a + b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator+(A&& a, B&& b) {
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::add>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// a - b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator-(A&& a, B&& b) {
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::sub>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// a * b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator*(A&& a, B&& b) {
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::mul>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// a / b; integers truncate, x / 0 is 0, the smallest integer / -1 is itself.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator/(A&& a, B&& b) {
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::div>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// The remainder of a / b, with the sign of a (floats: C's fmod); x % 0 is x in integers.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator%(A&& a, B&& b) {
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::rem>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// -a; unsigned integers wrap.
template <Expression A>
auto operator-(A&& a) {
  return dsl::unary<dsl::Use::arithmetic, codegen::Op::neg>(std::forward<A>(a));
}

// --- comparisons, to bool; with NaN all are false but != -----------------------------------------

/// a == b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator==(A&& a, B&& b) {
  return dsl::binary<dsl::Use::equality, codegen::Op::eq>(std::forward<A>(a), std::forward<B>(b));
}
/// a != b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator!=(A&& a, B&& b) {
  return dsl::binary<dsl::Use::equality, codegen::Op::ne>(std::forward<A>(a), std::forward<B>(b));
}
/// a < b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator<(A&& a, B&& b) {
  return dsl::binary<dsl::Use::comparison, codegen::Op::lt>(std::forward<A>(a), std::forward<B>(b));
}
/// a <= b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator<=(A&& a, B&& b) {
  return dsl::binary<dsl::Use::comparison, codegen::Op::le>(std::forward<A>(a), std::forward<B>(b));
}
/// a > b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator>(A&& a, B&& b) {
  return dsl::binary<dsl::Use::comparison, codegen::Op::gt>(std::forward<A>(a), std::forward<B>(b));
}
/// a >= b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator>=(A&& a, B&& b) {
  return dsl::binary<dsl::Use::comparison, codegen::Op::ge>(std::forward<A>(a), std::forward<B>(b));
}

// --- logic, on bool; both sides are always computed ----------------------------------------------

/// a and b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator&&(A&& a, B&& b) {
  return dsl::binary<dsl::Use::logic, codegen::Op::bit_and>(std::forward<A>(a), std::forward<B>(b));
}
/// a or b.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator||(A&& a, B&& b) {
  return dsl::binary<dsl::Use::logic, codegen::Op::bit_or>(std::forward<A>(a), std::forward<B>(b));
}
/// not a.
template <Expression A>
auto operator!(A&& a) {
  return dsl::unary<dsl::Use::logic, codegen::Op::bit_not>(std::forward<A>(a));
}

// --- bits, on integers (&, | and ^ also on bool) -------------------------------------------------

/// Bitwise and.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator&(A&& a, B&& b) {
  return dsl::binary<dsl::Use::bitwise, codegen::Op::bit_and>(std::forward<A>(a),
                                                              std::forward<B>(b));
}
/// Bitwise or.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator|(A&& a, B&& b) {
  return dsl::binary<dsl::Use::bitwise, codegen::Op::bit_or>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// Bitwise exclusive or.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator^(A&& a, B&& b) {
  return dsl::binary<dsl::Use::bitwise, codegen::Op::bit_xor>(std::forward<A>(a),
                                                              std::forward<B>(b));
}
/// Bitwise not.
template <Expression A>
auto operator~(A&& a) {
  return dsl::unary<dsl::Use::shift, codegen::Op::bit_not>(std::forward<A>(a));
}
/// a shifted left; the amount counts modulo the width of a's compute type.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator<<(A&& a, B&& b) {
  return dsl::shift<codegen::Op::shl>(std::forward<A>(a), std::forward<B>(b));
}
/// a shifted right, with its sign; the amount counts modulo the width of a's compute type.
template <class A, class B>
  requires dsl::Operands<A, B>
auto operator>>(A&& a, B&& b) {
  return dsl::shift<codegen::Op::shr>(std::forward<A>(a), std::forward<B>(b));
}

// --- functions -----------------------------------------------------------------------------------

/// The smaller of two; NaN if either is NaN, and -0 < +0. With one argument, cf::min is a fold.
template <class A, class B>
  requires dsl::Operands<A, B>
auto min(A&& a, B&& b) {
  (void)dsl::BareConditionRule<dsl::is_bare_condition<A, B>()>{};
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::min>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// The larger of two; NaN if either is NaN, and -0 < +0. With one argument, cf::max is a fold.
template <class A, class B>
  requires dsl::Operands<A, B>
auto max(A&& a, B&& b) {
  (void)dsl::BareConditionRule<dsl::is_bare_condition<A, B>()>{};
  return dsl::binary<dsl::Use::arithmetic, codegen::Op::max>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// Refused: extremes of three and more.
template <class A, class B, class C, class... More>
  requires dsl::Operands<A, B, C, More...>
auto min(A&& a, B&& b, C&&, More&&...) {
  (void)dsl::ExtremeCountRule<sizeof...(More) == 0 && std::is_void_v<C>>{};
  return min(std::forward<A>(a), std::forward<B>(b));
}
template <class A, class B, class C, class... More>
  requires dsl::Operands<A, B, C, More...>
auto max(A&& a, B&& b, C&&, More&&...) {
  (void)dsl::ExtremeCountRule<sizeof...(More) == 0 && std::is_void_v<C>>{};
  return max(std::forward<A>(a), std::forward<B>(b));
}
// Functions of one operand, as op_table.inc documents them:
//
//     abs, sign, sqrt, rsqrt, floor, ceil, round, exp, exp2, expm1, log, log2, log1p, sin, cos,
//     tanh, erf, and the tests isfinite, isnan, isinf
#define OPERATION(...)
#define FUNCTION(name, call, use, ...)                                       \
  template <Expression A>                                                    \
  auto call(A&& a) {                                                         \
    return dsl::unary<dsl::Use::use, codegen::Op::name>(std::forward<A>(a)); \
  }
#include "chainfold/codegen/base/op_table.inc"

/// a to the b, of floats; an exponent given as a literal is part of the kernel.
template <class A, class B>
  requires dsl::Operands<A, B>
auto pow(A&& a, B&& b) {
  return dsl::binary<dsl::Use::real, codegen::Op::pow, true>(std::forward<A>(a),
                                                             std::forward<B>(b));
}
/// a * b + c, rounded once in floats.
template <class A, class B, class C>
  requires dsl::Operands<A, B, C>
auto fma(A&& a, B&& b, C&& c) {
  dsl::check_pair<A, B>();
  dsl::check_pair<A, C>();
  dsl::check_pair<B, C>();
  constexpr DType kBeside = dsl::beside<A, B, C>();
  constexpr DType kIn = promote(kBeside, kBeside);
  (void)dsl::TypeRule<dsl::Use::arithmetic, kIn>{};
  auto x = dsl::as_expression<kIn, kBeside>(std::forward<A>(a));
  auto y = dsl::as_expression<kIn, kBeside>(std::forward<B>(b));
  auto z = dsl::as_expression<kIn, kBeside>(std::forward<C>(c));
  return dsl::Ternary<codegen::Op::fma, kIn, decltype(x), decltype(y), decltype(z)>(
      std::move(x), std::move(y), std::move(z));
}
/// a where the condition is true, else b; both are always computed. Operands of one type keep it,
/// two literals too; others take their common type.
template <Expression C, class A, class B>
  requires dsl::Operands<C, A, B>
auto select(C&& condition, A&& a, B&& b) {
  (void)dsl::ConditionRule<kTypeOf<C>>{};
  dsl::check_levels<C, A>();
  dsl::check_levels<C, B>();
  dsl::check_levels<A, B>();
  dsl::check_types<A, B>();
  if constexpr (!Expression<A> && !Expression<B>) {
    (void)dsl::TwoLiteralsRule<dsl::kOwnType<A>, dsl::kOwnType<B>>{};
  }
  constexpr DType kOut = dsl::selected_type<A, B>();
  constexpr DType kBeside = Expression<A> ? dsl::beside<A>() : dsl::beside<B>();
  auto x = dsl::as_expression<kOut, kBeside>(std::forward<A>(a));
  auto y = dsl::as_expression<kOut, kBeside>(std::forward<B>(b));
  return dsl::Ternary<codegen::Op::select, kOut, std::remove_cvref_t<C>, decltype(x), decltype(y)>(
      std::forward<C>(condition), std::move(x), std::move(y));
}
/// a as a T, in the kernel. Integers wrap, and conversions to floats round to nearest even. Float
/// to integer truncates and saturates, and NaN gives 0. Anything to bool is a != 0.
template <class T = Unnamed, Expression A>
auto cast(A&& a) {
  (void)ElementRule<T>{};
  return dsl::Unary<codegen::Op::convert, kDType<ElementOr<T>>, kTypeOf<A>, std::remove_cvref_t<A>>(
      std::forward<A>(a));
}

}  // namespace chainfold
