// Scans: for each element what a fold is so far.
//
//     auto total = cf::over(cf::segments(256), cf::inclusive_sum(x));         // running sums
//     auto start = cf::over(cf::whole(), cf::exclusive_sum(length));          // offsets
//     auto ema   = cf::over(cf::whole(), cf::inclusive(cf::fold(linear, a, b)));
//     auto level = cf::over(cf::segments(1000), cf::inclusive(cf::mean(x)), cf::max(x));
//
// cf::inclusive(e) is, for each element, what `e`, an expression of folds, would be if the segment
// ended with this element; cf::exclusive(e) what it would be if the segment ended before it. With
// cf::backward the segment begins with the element, or behind it, and still is folded in the order
// of the elements. Every fold can be scanned: filtered ones, argmin, a monoid of one's own.
//
// Types are those of the folds (fold.hpp). Where cf::exclusive has nothing to fold, at the first
// element (backward: the last), folds give what they give of nothing: a sum is 0, a mean NaN, a
// minimum +inf or the largest value, argmin -1. cf::count() within `e` is the number of elements so
// far; cf::index() stays the position in the segment, so that argmin tells that.
//
// What is computed from scans, inputs, parameters, cf::index(), cf::count() and folds, whose value
// all elements of a segment share, is again one value an element, and an output of cf::over:
//
//     auto share = cf::over(cf::segments(1000), cf::inclusive_sum(x) / cf::sum(x));
//
// Outputs with a value a segment may stand beside it. A fold or a scan of a scan is refused.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {

/// The type of cf::backward.
struct Backward {};
/// The last argument of a scan that runs from the end of the segment: each element gets the fold
/// from itself (inclusive) or from the next one (exclusive) to the end.
inline constexpr Backward backward{};

namespace dsl {

template <Level L, bool Folds>
struct ScanRule {
  static_assert(L != Level::element,
                "chainfold: a scan of a value for each element; cf::inclusive and cf::exclusive "
                "take an expression of folds, e.g. cf::inclusive(cf::sum(x))");
  static_assert(L != Level::state,
                "chainfold: a scan inside a monoid; its lift, merge and finalize compute from "
                "their arguments and literals alone");
  static_assert(L == Level::element || L == Level::state || Folds,
                "chainfold: a scan of an expression without a fold; cf::inclusive and "
                "cf::exclusive take an expression of folds, e.g. cf::inclusive(cf::sum(x)), and "
                "cf::index() + 1 counts the elements");
};

/// Expression E of folds as it runs along the segment.
template <bool Exclusive, bool Reverse, class E>
struct ScanOf : Operation<E::kType, Level::element, E> {
  explicit ScanOf(E folded)
      : Operation<E::kType, Level::element, E>(folded.let_depth), e(std::move(folded)) {}
  static constexpr bool kFolds = false;
  static constexpr bool kScans = true;
  codegen::NodeId write(Walk& walk) const {
    return walk.builder.running(e.write(walk), {.exclusive = Exclusive, .reverse = Reverse});
  }
  E e;
};

template <bool Exclusive, bool Reverse, class E>
auto scan_of(E&& e) {
  using Plain = std::remove_cvref_t<E>;
  (void)ScanRule<Plain::kLevel, Plain::kFolds>{};
  return ScanOf<Exclusive, Reverse, Plain>(std::forward<E>(e));
}

template <class B>
concept ABackward = std::same_as<std::remove_cvref_t<B>, Backward>;

/// Arguments that cf::inclusive and cf::exclusive do not take.
template <class E, class... A>
concept NoScan = !Expression<E> || sizeof...(A) > 1 || (!ABackward<A> || ...);
template <bool IsExpression>
struct ScanArgumentsRule {
  static_assert(IsExpression,
                "chainfold: a scan of what is no expression; cf::inclusive and cf::exclusive take "
                "an expression of folds, e.g. cf::inclusive(cf::sum(x)) of auto x = "
                "cf::input<float>(\"x\")");
  static_assert(!IsExpression,
                "chainfold: behind its expression a scan takes cf::backward alone; a filter is an "
                "argument of the fold, e.g. cf::inclusive(cf::sum(x, cf::where(x > 0)))");
};

template <class F>
struct RunningSumRule {
  static_assert(!ABackward<F>,
                "chainfold: cf::backward is the last argument of a scan, behind the filter");
};

/// The sum that runs, of an expression and a filter.
template <class E, class F>
auto running_sum(E&& e, F&& filter) {
  (void)RunningSumRule<F>{};
  if constexpr (ABackward<F>) {
    return Refused();
  } else {
    return sum(std::forward<E>(e), std::forward<F>(filter));
  }
}

template <bool Uniform>
struct InitialRule {
  static_assert(Uniform,
                "chainfold: the initial value of cf::exclusive_sum is one for the launch: a "
                "number, or an expression of parameters");
};

}  // namespace dsl

/// For each element what `e`, an expression of folds, is of the segment up to this element.
template <Expression E>
auto inclusive(E&& e) {
  return dsl::scan_of<false, false>(std::forward<E>(e));
}
/// For each element what `e` is of this element and all behind it.
template <Expression E>
auto inclusive(E&& e, Backward) {
  return dsl::scan_of<false, true>(std::forward<E>(e));
}

/// For each element what `e`, an expression of folds, is of the segment before this element.
template <Expression E>
auto exclusive(E&& e) {
  return dsl::scan_of<true, false>(std::forward<E>(e));
}
/// For each element what `e` is of all behind this element.
template <Expression E>
auto exclusive(E&& e, Backward) {
  return dsl::scan_of<true, true>(std::forward<E>(e));
}

/// Refused: what is no expression of folds, and more than cf::backward behind it.
template <class E, class... A>
  requires dsl::NoScan<E, A...>
auto inclusive(E&&, A&&...) {
  (void)dsl::ScanArgumentsRule<Expression<E>>{};
  return dsl::Refused();
}
template <class E, class... A>
  requires dsl::NoScan<E, A...>
auto exclusive(E&&, A&&...) {
  (void)dsl::ScanArgumentsRule<Expression<E>>{};
  return dsl::Refused();
}

/// The running sum, cf::inclusive(cf::sum(e)), with a filter and cf::backward as those take them.
template <class E>
auto inclusive_sum(E&& e) {
  return inclusive(sum(std::forward<E>(e)));
}
template <class E>
auto inclusive_sum(E&& e, Backward) {
  return inclusive(sum(std::forward<E>(e)), backward);
}
template <class E, class F>
  requires(!dsl::ABackward<F>)
auto inclusive_sum(E&& e, F&& filter) {
  return inclusive(dsl::running_sum(std::forward<E>(e), std::forward<F>(filter)));
}
template <class E, class F>
auto inclusive_sum(E&& e, F&& filter, Backward) {
  return inclusive(dsl::running_sum(std::forward<E>(e), std::forward<F>(filter)), backward);
}

/// The sum of what lies before each element, cf::exclusive(cf::sum(e)): 0 at the first one.
template <class E>
auto exclusive_sum(E&& e) {
  return exclusive(sum(std::forward<E>(e)));
}
template <class E>
auto exclusive_sum(E&& e, Backward) {
  return exclusive(sum(std::forward<E>(e)), backward);
}
template <class E, dsl::AFilter F>
auto exclusive_sum(E&& e, F&& filter) {
  return exclusive(sum(std::forward<E>(e), std::forward<F>(filter)));
}
template <class E, class F>
auto exclusive_sum(E&& e, F&& filter, Backward) {
  return exclusive(dsl::running_sum(std::forward<E>(e), std::forward<F>(filter)), backward);
}
/// The same plus `initial`, a number or an expression of parameters: what the first element gets.
template <class E, class I>
  requires(Expression<I> || dsl::Scalar<I>)
auto exclusive_sum(E&& e, I&& initial) {
  (void)dsl::BareConditionRule<dsl::is_condition<I>()>{};
  if constexpr (dsl::is_condition<I>()) {
    return exclusive(sum(std::forward<E>(e)));
  } else {
    if constexpr (Expression<I>) (void)dsl::InitialRule<kLevelOf<I> == Level::uniform>{};
    return exclusive(sum(std::forward<E>(e))) + std::forward<I>(initial);
  }
}

}  // namespace chainfold
