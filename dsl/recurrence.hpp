// Linear recurrences: for each element y = a * y + x, where y is what the element before has.
//
//     auto ema   = cf::over(cf::whole(), cf::linear_recurrence(0.9F, 0.1F * x));
//     auto level = cf::over(cf::segments(1000), cf::linear_recurrence(decay, inflow, start));
//     auto value = cf::over(cf::segments(360), cf::linear_recurrence(discount, cash,
//     cf::backward));
//
// `a` and `x` are expressions of the inputs, of parameters, or numbers, and at least one has a
// value an element. y before the first element (backward: behind the last) is 0, or the third
// argument, a number or an expression of parameters, so that a stream goes on where its last y is
// given. The result is an output of cf::over and an operand of what depends on scans (scan.hpp).
//
// Types. f32 where both operands are floats of up to 32 bits or integers of up to 16, else f64; the
// operands and the first y are converted before.
//
// Numbers. No product of many `a` leaves a range, and none that is infinite meets a 0, which a
// monoid of (a, x) pairs cannot avoid. From finite operands y is never NaN, and within 2 u
// (u = 2^-24, of f64 2^-53) of the sum over j of |a_i ... a_(j+1) x_j|, the first y among the x,
// wherever that sum is finite in f64. Behind an operand that is not finite nothing is promised.
#pragma once

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/scan.hpp"

namespace chainfold {
namespace dsl {

template <Level A, Level X>
struct RecurrenceLevelRule {
  static constexpr bool kOfState = A == Level::state || X == Level::state;
  static constexpr bool kOfSegment = A == Level::segment || X == Level::segment;
  static constexpr bool kOfElements = A == Level::element || X == Level::element;
  static_assert(!kOfState,
                "chainfold: a recurrence inside a monoid; its lift, merge and finalize compute "
                "from their arguments and literals alone");
  static_assert(kOfState || !kOfSegment,
                "chainfold: a recurrence of a fold; cf::linear_recurrence takes expressions of the "
                "inputs: make the fold an output, and give its values as an input or a parameter");
  static_assert(kOfState || kOfSegment || kOfElements,
                "chainfold: a recurrence without elements; one operand of "
                "cf::linear_recurrence(a, x) is an expression of the inputs");
};
template <DType T>
struct RecurrenceTypeRule {
  static_assert(T != DType::boolean,
                "chainfold: cf::linear_recurrence is not defined on bool; cast it to a number, "
                "e.g. cf::cast<float>(b), or use cf::select");
};
template <bool Uniform>
struct FirstValueRule {
  static_assert(Uniform,
                "chainfold: the first value of cf::linear_recurrence is one for the launch: a "
                "number, or an expression of parameters; cf::backward comes last");
};
template <bool Fits>
struct RecurrenceArgumentsRule {
  static_assert(Fits,
                "chainfold: cf::linear_recurrence takes a factor, a value, if wanted y before the "
                "first element, and at last, if wanted, cf::backward; e.g. "
                "cf::linear_recurrence(0.9F, x) of auto x = cf::input<float>(\"x\")");
};

/// The type that operand E asks for; a number asks for none.
template <class E>
constexpr DType recurrence_type() noexcept {
  if constexpr (Expression<E>) {
    return mean_type(kTypeOf<E>);
  } else {
    return DType::f32;
  }
}
template <class E>
constexpr Level level_or_uniform() noexcept {
  if constexpr (Expression<E>) {
    return kLevelOf<E>;
  } else {
    return Level::uniform;
  }
}
template <class E>
constexpr bool is_scan() noexcept {
  if constexpr (Expression<E>) {
    return std::remove_cvref_t<E>::kScans;
  } else {
    return false;
  }
}

/// y = a y + x in T; `initial` before all, or none (NoFilter).
template <DType T, bool Reverse, class A, class X, class I>
struct RecurrenceOf : Operation<T, Level::element, A, X, I> {
  RecurrenceOf(A factor, X value, I first)
      : Operation<T, Level::element, A, X, I>(
            std::max({factor.let_depth, value.let_depth, first.let_depth})),
        a(std::move(factor)),
        x(std::move(value)),
        initial(std::move(first)) {}
  static constexpr bool kFolds = false;
  static constexpr bool kScans = true;
  codegen::NodeId write(Walk& walk) const {
    const codegen::NodeId factor = a.write(walk), value = x.write(walk);
    return walk.builder.recurrence(factor, value, initial.write(walk), Reverse, T);
  }
  A a;
  X x;
  I initial;
};

template <bool Reverse, class A, class X, class I>
auto recurrence_of(A&& a, X&& x, I&& initial) {
  (void)RecurrenceLevelRule<level_or_uniform<A>(), level_or_uniform<X>()>{};
  (void)NoScanRule<is_scan<A>() || is_scan<X>()>{};
  if constexpr (Expression<A>) (void)RecurrenceTypeRule<kTypeOf<A>>{};
  if constexpr (Expression<X>) (void)RecurrenceTypeRule<kTypeOf<X>>{};
  constexpr DType kIn = promote(recurrence_type<A>(), recurrence_type<X>());
  auto factor = as_expression<kIn, kIn>(std::forward<A>(a));
  auto value = as_expression<kIn, kIn>(std::forward<X>(x));
  if constexpr (std::same_as<std::remove_cvref_t<I>, NoFilter>) {
    return RecurrenceOf<kIn, Reverse, decltype(factor), decltype(value), NoFilter>(
        std::move(factor), std::move(value), NoFilter{});
  } else {
    constexpr bool kUniform = level_or_uniform<I>() == Level::uniform;
    (void)FirstValueRule<kUniform>{};
    if constexpr (kUniform) {
      auto first = as_expression<kIn, kIn>(std::forward<I>(initial));
      return RecurrenceOf<kIn, Reverse, decltype(factor), decltype(value), decltype(first)>(
          std::move(factor), std::move(value), std::move(first));
    } else {
      return Refused();
    }
  }
}

template <class I>
concept FirstValue = Expression<I> || Scalar<I>;
/// Whether there is such a call.
template <class... A>
inline constexpr bool kRecurrenceArguments = false;
template <class A, class X>
  requires Operands<A, X>
inline constexpr bool kRecurrenceArguments<A, X> = true;
template <class A, class X, class Last>
  requires Operands<A, X>
inline constexpr bool kRecurrenceArguments<A, X, Last> = ABackward<Last> || FirstValue<Last>;
template <class A, class X, class I, class Last>
  requires Operands<A, X>
inline constexpr bool kRecurrenceArguments<A, X, I, Last> = FirstValue<I> && ABackward<Last>;

}  // namespace dsl

/// For each element a * y + x, where y is that of the element before it, and 0 at first.
template <class A, class X>
  requires dsl::Operands<A, X>
auto linear_recurrence(A&& a, X&& x) {
  return dsl::recurrence_of<false>(std::forward<A>(a), std::forward<X>(x), dsl::NoFilter{});
}
/// The same from the last element to the first: y is that of the element behind.
template <class A, class X>
  requires dsl::Operands<A, X>
auto linear_recurrence(A&& a, X&& x, Backward) {
  return dsl::recurrence_of<true>(std::forward<A>(a), std::forward<X>(x), dsl::NoFilter{});
}
/// The same where y is `initial` at first, a number or an expression of parameters.
template <class A, class X, dsl::FirstValue I>
  requires dsl::Operands<A, X>
auto linear_recurrence(A&& a, X&& x, I&& initial) {
  return dsl::recurrence_of<false>(std::forward<A>(a), std::forward<X>(x),
                                   std::forward<I>(initial));
}
template <class A, class X, dsl::FirstValue I>
  requires dsl::Operands<A, X>
auto linear_recurrence(A&& a, X&& x, I&& initial, Backward) {
  return dsl::recurrence_of<true>(std::forward<A>(a), std::forward<X>(x), std::forward<I>(initial));
}
/// Refused: other arguments, or in another order.
template <class... A>
  requires(!dsl::kRecurrenceArguments<A...>)
auto linear_recurrence(A&&...) {
  (void)dsl::RecurrenceArgumentsRule<dsl::kRecurrenceArguments<A...>>{};
  return dsl::Refused();
}

}  // namespace chainfold
