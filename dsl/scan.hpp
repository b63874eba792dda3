// Scans: for each element what a fold is so far.
//
//     auto total = cf::over(cf::segments(256), cf::inclusive_sum(x));         // running sums
//     auto start = cf::over(cf::whole(), cf::exclusive_sum(length));          // offsets
//     auto best  = cf::over(cf::whole(), cf::inclusive(cf::max(x), 0));        // from 0 on
//     auto level = cf::over(cf::segments(1000), cf::inclusive(cf::mean(x)), cf::max(x));
//
// The value. `cf::inclusive(e)` is what `e`, an expression of folds, would be if the segment ended
// with the element. `cf::exclusive(e)` is what it would be if the segment ended before it. With
// cf::backward the segment begins with the element, or behind it. Elements are then still folded
// in their order. Every fold can be scanned: filtered ones, argmin, a monoid of one's own.
//
// Types are those of the folds (fold.hpp). `cf::exclusive` has nothing to fold at the first element
// (backward: at the last). Folds give there what they give of nothing: a sum 0, a mean NaN, a
// minimum +inf or the largest value, argmin -1. A scan of one sum, minimum or the like takes an
// initial value, which is combined with the result in their common type. Within `e`, cf::count() is
// the number of elements so far. `cf::index()` stays the position in the segment, so that this is
// what argmin gives.
//
// Expressions of scans, inputs, parameters, cf::index(), cf::count() and folds have one value an
// element again, and may be outputs of cf::over. A fold's value is broadcast to all elements of its
// segment:
//
//     auto share = cf::over(cf::segments(1000), cf::inclusive_sum(x) / cf::sum(x));
//
// Outputs with a value a segment may stand beside such outputs. A fold or a scan of a scan is
// refused.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {

/// The type of cf::backward.
struct Backward {};
/// The last argument of a scan that runs from the end of the segment. Each element gets the fold
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
/// What a scan may begin with.
template <class I>
concept AnInitial = Expression<I> || Scalar<I>;

/// Whether this may stand behind the expression of a scan.
template <class... A>
inline constexpr bool kScanEnds = sizeof...(A) == 0;
template <class A>
inline constexpr bool kScanEnds<A> = ABackward<A> || AnInitial<A>;
template <class I, class B>
inline constexpr bool kScanEnds<I, B> = AnInitial<I> && ABackward<B>;

template <bool IsExpression>
struct ScanArgumentsRule {
  static_assert(IsExpression,
                "chainfold: a scan of what is no expression; cf::inclusive and cf::exclusive take "
                "an expression of folds, e.g. cf::inclusive(cf::sum(x)) of auto x = "
                "cf::input<float>(\"x\")");
  static_assert(!IsExpression,
                "chainfold: behind its expression a scan takes an initial value and cf::backward "
                "alone; a filter is an argument of the fold, e.g. "
                "cf::inclusive(cf::sum(x, cf::where(x > 0)))");
};

template <class F>
struct RunningSumRule {
  static_assert(!ABackward<F>,
                "chainfold: cf::backward is the last argument of a scan, behind the filter and the "
                "initial value");
};
template <bool Uniform>
struct InitialRule {
  static_assert(Uniform,
                "chainfold: the initial value of a scan is one for the launch: a number, or an "
                "expression of parameters");
};
template <bool Has>
struct InitialOfRule {
  static_assert(Has,
                "chainfold: an initial value goes with a scan of one sum, count, product, minimum, "
                "maximum, dot product, cf::any, cf::all or operation on bits, whose result it is "
                "combined with; others have none: compute it from the scan");
};

/// By which operation an initial value is combined with the fold E.
template <class E>
struct EnteredBy {
  static constexpr bool kHas = false;
  static constexpr FoldKind kKind = FoldKind::sum;
};
template <FoldKind K, class E, class F>
struct EnteredBy<FoldOf<K, E, F>> {
  static constexpr bool kHas = K == FoldKind::sum || K == FoldKind::product || K == FoldKind::min ||
                               K == FoldKind::max || K == FoldKind::any || K == FoldKind::all ||
                               K == FoldKind::bit_and || K == FoldKind::bit_or ||
                               K == FoldKind::bit_xor;
  static constexpr FoldKind kKind = K;
};
template <class F>
struct EnteredBy<Count<F>> {
  static constexpr bool kHas = true;
  static constexpr FoldKind kKind = FoldKind::sum;
};

template <FoldKind K, class S, class I>
auto enter(S&& scan, I&& initial) {
  if constexpr (K == FoldKind::product) {
    return std::forward<S>(scan) * std::forward<I>(initial);
  } else if constexpr (K == FoldKind::min) {
    return chainfold::min(std::forward<S>(scan), std::forward<I>(initial));
  } else if constexpr (K == FoldKind::max) {
    return chainfold::max(std::forward<S>(scan), std::forward<I>(initial));
  } else if constexpr (K == FoldKind::any) {
    return std::forward<S>(scan) || std::forward<I>(initial);
  } else if constexpr (K == FoldKind::all) {
    return std::forward<S>(scan) && std::forward<I>(initial);
  } else if constexpr (K == FoldKind::bit_and) {
    return std::forward<S>(scan) & std::forward<I>(initial);
  } else if constexpr (K == FoldKind::bit_or) {
    return std::forward<S>(scan) | std::forward<I>(initial);
  } else if constexpr (K == FoldKind::bit_xor) {
    return std::forward<S>(scan) ^ std::forward<I>(initial);
  } else {
    return std::forward<S>(scan) + std::forward<I>(initial);
  }
}

/// The scan of `folded` with what stands behind it: an initial value and cf::backward.
template <bool Exclusive, class E, class... A>
auto scan_with(E&& folded, A&&... ends) {
  constexpr bool kReverse = (ABackward<A> || ...);
  if constexpr (sizeof...(A) == (kReverse ? 1 : 0)) {
    return scan_of<Exclusive, kReverse>(std::forward<E>(folded));
  } else {
    using Entered = EnteredBy<std::remove_cvref_t<E>>;
    using Initial = std::tuple_element_t<0, std::tuple<A...>>;
    constexpr bool kUniform = [] {
      if constexpr (Expression<Initial>) return kLevelOf<Initial> == Level::uniform;
      return true;
    }();
    (void)InitialOfRule<Entered::kHas>{};
    (void)InitialRule<kUniform>{};
    auto scan = scan_of<Exclusive, kReverse>(std::forward<E>(folded));
    if constexpr (Entered::kHas && kUniform) {
      return enter<Entered::kKind>(std::move(scan), std::get<0>(std::tie(ends...)));
    } else {
      return scan;
    }
  }
}

/// A running sum of e; a filter is the first of the arguments behind it.
template <bool Exclusive, class E>
auto running_sum(E&& e) {
  return scan_with<Exclusive>(sum(std::forward<E>(e)));
}
template <bool Exclusive, class E, class First, class... A>
auto running_sum(E&& e, First&& first, A&&... ends) {
  if constexpr (AFilter<First>) {
    if constexpr (kScanEnds<A...>) {
      return scan_with<Exclusive>(sum(std::forward<E>(e), std::forward<First>(first)),
                                  std::forward<A>(ends)...);
    } else {
      (void)ScanArgumentsRule<Expression<E>>{};
      return Refused();
    }
  } else if constexpr (is_condition<First>()) {
    (void)BareConditionRule<is_condition<First>()>{};
    return scan_with<Exclusive>(sum(std::forward<E>(e)));
  } else if constexpr (!kScanEnds<First, A...>) {
    (void)RunningSumRule<First>{};
    if constexpr (!ABackward<First>) (void)ScanArgumentsRule<Expression<E>>{};
    return Refused();
  } else {
    return scan_with<Exclusive>(sum(std::forward<E>(e)), std::forward<First>(first),
                                std::forward<A>(ends)...);
  }
}

}  // namespace dsl

/// For each element what `e`, an expression of folds, is of the segment up to this element. With
/// cf::backward it is that of this element and all behind it. Behind a sum, a minimum or the like
/// an initial value may stand, a number or an expression of parameters:
///
///     cf::inclusive(cf::max(x), 0)
template <Expression E, class... A>
  requires dsl::kScanEnds<A...>
auto inclusive(E&& e, A&&... ends) {
  return dsl::scan_with<false>(std::forward<E>(e), std::forward<A>(ends)...);
}
/// The same of the segment before this element, or with cf::backward of all behind it. The first
/// element (backward: the last) gets the initial value if there is one.
template <Expression E, class... A>
  requires dsl::kScanEnds<A...>
auto exclusive(E&& e, A&&... ends) {
  return dsl::scan_with<true>(std::forward<E>(e), std::forward<A>(ends)...);
}

/// Refused: an operand that is no expression of folds, or other arguments behind it.
template <class E, class... A>
  requires(!Expression<E> || !dsl::kScanEnds<A...>)
auto inclusive(E&&, A&&...) {
  (void)dsl::ScanArgumentsRule<Expression<E>>{};
  return dsl::Refused();
}
template <class E, class... A>
  requires(!Expression<E> || !dsl::kScanEnds<A...>)
auto exclusive(E&&, A&&...) {
  (void)dsl::ScanArgumentsRule<Expression<E>>{};
  return dsl::Refused();
}

/// The running sum, cf::inclusive(cf::sum(e)). Behind `e` may follow, in this order, a filter, an
/// initial value and cf::backward.
template <class E, class... A>
auto inclusive_sum(E&& e, A&&... ends) {
  return dsl::running_sum<false>(std::forward<E>(e), std::forward<A>(ends)...);
}
/// The sum of what lies before each element, cf::exclusive(cf::sum(e)): 0 at the first one, or the
/// initial value. The same arguments may follow `e`.
template <class E, class... A>
auto exclusive_sum(E&& e, A&&... ends) {
  return dsl::running_sum<true>(std::forward<E>(e), std::forward<A>(ends)...);
}

}  // namespace chainfold
