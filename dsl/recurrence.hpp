// Linear recurrences: for each element y = a * y' + x, where y' is the y of the element before.
//
//     auto ema   = cf::over(cf::whole(), cf::linear_recurrence(0.9F, 0.1F * x));
//     auto level = cf::over(cf::segments(1000), cf::linear_recurrence(decay, inflow, start));
//     auto value = cf::over(cf::segments(360),
//                           cf::linear_recurrence(discount, cash, cf::backward));
//
// Operands. `a` and `x` are expressions of the inputs or of parameters, or numbers. At least one of
// them has a value an element. Before the first element (backward: behind the last) y is 0 or the
// third argument, a number or an expression of parameters. So a stream goes on where its last y is
// given. The result is an output of cf::over and an operand of what depends on scans (scan.hpp).
//
// Types. The result is f32 where both operands are floats of up to 32 bits or integers of up to 16,
// else f64. The operands and the first y are converted to it before.
//
// Numbers. No product of many `a` leaves a range, and none that is infinite meets a 0. A monoid of
// (a, x) pairs cannot avoid that. From finite operands y is never NaN, and its error is at most
//
//     2 u S + half the type's smallest number, where u is 2^-24, of f64 2^-53,
//     and S is the sum over j of |a_i ... a_(j+1) x_j|, the first y among the x
//
// wherever S is finite in f64. Behind an operand that is not finite nothing is promised.
#pragma once

#include <algorithm>
#include <tuple>
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
template <bool OfBool>
struct RecurrenceTypeRule {
  static_assert(!OfBool,
                "chainfold: cf::linear_recurrence is not defined on bool; cast it to a number, "
                "e.g. cf::cast<float>(b), or use cf::select");
};
template <bool Fits>
struct RecurrenceArgumentsRule {
  static_assert(Fits,
                "chainfold: cf::linear_recurrence takes a factor, a value, if wanted y before the "
                "first element, and at last, if wanted, cf::backward; e.g. "
                "cf::linear_recurrence(0.9F, x) of auto x = cf::input<float>(\"x\")");
};

/// The type and the level that an operand asks for; of a number those that ask for least.
template <class E>
struct OperandOf {
  static constexpr DType kType = DType::f32;
  static constexpr Level kLevel = Level::uniform;
  static constexpr bool kScans = false, kIsBool = false;
};
template <Expression E>
struct OperandOf<E> {
  static constexpr DType kType = mean_type(E::kType);
  static constexpr Level kLevel = E::kLevel;
  static constexpr bool kScans = E::kScans, kIsBool = E::kType == DType::boolean;
};

/// y = a y' + x in T. `initial` is y before all elements, or none (NoFilter).
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

template <class A, class X, class... Ends>
auto recurrence_of(A&& a, X&& x, Ends&&... ends) {
  using Factor = OperandOf<std::remove_cvref_t<A>>;
  using Value = OperandOf<std::remove_cvref_t<X>>;
  (void)RecurrenceLevelRule<Factor::kLevel, Value::kLevel>{};
  (void)NoScanRule<Factor::kScans || Value::kScans>{};
  (void)RecurrenceTypeRule<Factor::kIsBool || Value::kIsBool>{};
  constexpr DType kIn = promote(Factor::kType, Value::kType);
  constexpr bool kReverse = (ABackward<Ends> || ...);
  auto factor = as_expression<kIn, kIn>(std::forward<A>(a));
  auto value = as_expression<kIn, kIn>(std::forward<X>(x));
  const auto from = [&](auto first) {
    return RecurrenceOf<kIn, kReverse, decltype(factor), decltype(value), decltype(first)>(
        std::move(factor), std::move(value), std::move(first));
  };
  if constexpr (sizeof...(Ends) == (kReverse ? 1 : 0)) {
    return from(NoFilter{});
  } else {
    using First = std::remove_cvref_t<std::tuple_element_t<0, std::tuple<Ends...>>>;
    constexpr bool kUniform = OperandOf<First>::kLevel == Level::uniform;
    (void)InitialRule<kUniform>{};
    if constexpr (kUniform) {
      return from(as_expression<kIn, kIn>(std::get<0>(std::tie(ends...))));
    } else {
      return Refused();
    }
  }
}

/// Whether there is such a call.
template <class... A>
inline constexpr bool kRecurrenceArguments = false;
template <class A, class X, class... Ends>
  requires Operands<A, X>
inline constexpr bool kRecurrenceArguments<A, X, Ends...> = kScanEnds<Ends...>;

}  // namespace dsl

/// For each element y = a * y' + x, where y' is the y of the element before it, and 0 at first.
/// Behind `x` may follow y before all elements, a number or an expression of parameters. The last
/// argument may be cf::backward: from the last element to the first.
template <class A, class X, class... Ends>
  requires dsl::kRecurrenceArguments<A, X, Ends...>
auto linear_recurrence(A&& a, X&& x, Ends&&... ends) {
  return dsl::recurrence_of(std::forward<A>(a), std::forward<X>(x), std::forward<Ends>(ends)...);
}
/// Refused: other arguments, or in another order.
template <class... A>
  requires(!dsl::kRecurrenceArguments<A...>)
auto linear_recurrence(A&&...) {
  (void)dsl::RecurrenceArgumentsRule<dsl::kRecurrenceArguments<A...>>{};
  return dsl::Refused();
}

}  // namespace chainfold
