// Folds: from the elements of a segment to one value.
//
// The last argument of each is an optional filter, cf::where(condition). Elements for which the
// condition is false do not take part, whatever their value, NaN included. What is computed from
// folds and parameters, e.g. cf::sqrt(cf::mean(x * x)), is again one value a segment.
//
// Types, and values where there is nothing to fold: an empty segment, or no element that passes.
//
// clang-format off
//   fold               type                                       value of nothing
//   sum, dot           f32 of floats up to 32 bits, f64 of f64,   0
//                      i64 of signed integers,
//                      u64 of unsigned integers and of bool
//   product            as a sum                                   1
//   count              i64                                        0
//   mean, variance     f32 of f32 and of types up to 16 bits,     NaN
//                      else f64
//   norm               as a mean                                  0
//   min, max           the operand's                              +inf, -inf; of integers the
//                                                                 type's largest, smallest
//   argmin, argmax     i64                                        -1
//   any, all           bool                                       false, true
//   logsumexp          f64 of f64, else f32                       -inf
//   bit_and            the operand's                              all ones
//   bit_or, bit_xor    the operand's                              0
// clang-format on
//
// For sum and dot, sums and products of unsigned integers count as unsigned. Integer sums wrap. A
// sum is never -0.
//
// Directly below a sum, mean, dot or norm of integers, `+ - *` are computed in the sum's type, so
// they do not wrap in a narrower one. They count as directly below through one another, through
// cf::let and through the values of cf::select. Folds of one's own: monoid.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold_rules.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {
namespace dsl {

/// The fold K of expression E over the elements that pass F.
template <FoldKind K, class E, class F>
struct FoldOf : Operation<kFoldType<K, E>, Level::segment, E, F> {
  FoldOf(E operand, F where)
      : Operation<kFoldType<K, E>, Level::segment, E, F>(
            std::max(operand.let_depth, where.let_depth)),
        e(std::move(operand)),
        filter(std::move(where)) {}
  static constexpr bool kFolds = true;
  codegen::NodeId write(Walk& walk) const {
    constexpr bool kWide = K == FoldKind::sum || K == FoldKind::mean || K == FoldKind::norm;
    const codegen::NodeId value = kWide ? write_exact(e, walk) : e.write(walk);
    const codegen::NodeId condition = filter.write(walk);
    codegen::GraphBuilder& builder = walk.builder;
    switch (K) {
      case FoldKind::sum: return builder.sum(value, condition, kFoldType<K, E>);
      case FoldKind::mean: return builder.mean(value, condition, kFoldType<K, E>);
      case FoldKind::norm: return builder.norm(value, condition, kFoldType<K, E>);
      case FoldKind::variance: return builder.variance(value, condition);
      case FoldKind::min: return builder.min(value, condition);
      case FoldKind::max: return builder.max(value, condition);
      case FoldKind::any: return builder.fold(codegen::make_any(), {value}, condition);
      case FoldKind::all: return builder.fold(codegen::make_all(), {value}, condition);
      case FoldKind::argmin: return builder.argmin(value, condition);
      case FoldKind::argmax: return builder.argmax(value, condition);
      case FoldKind::product: return builder.product(value, condition);
      case FoldKind::bit_and:
        return builder.fold(codegen::make_bits(Op::bit_and, E::kType), {value}, condition);
      case FoldKind::bit_or:
        return builder.fold(codegen::make_bits(Op::bit_or, E::kType), {value}, condition);
      case FoldKind::bit_xor:
        return builder.fold(codegen::make_bits(Op::bit_xor, E::kType), {value}, condition);
      case FoldKind::logsumexp: return builder.logsumexp(value, condition);
    }
    return codegen::kNoNode;
  }
  E e;
  F filter;
};

template <class F>
struct Count : Operation<DType::i64, Level::segment, F> {
  explicit Count(F where)
      : Operation<DType::i64, Level::segment, F>(where.let_depth), filter(std::move(where)) {}
  static constexpr bool kFolds = F::kLevel == Level::element;
  codegen::NodeId write(Walk& walk) const { return walk.builder.count(filter.write(walk)); }
  F filter;
};

template <FoldKind K, class E, class F = NoFilter>
auto checked_fold(E&& e, F&& filter = {}) {
  (void)FoldRule<K, kTypeOf<E>, kLevelOf<E>>{};
  (void)FoldLevelRule<kLevelOf<E>>{};
  (void)NoScanRule<std::remove_cvref_t<E>::kScans>{};
  return FoldOf<K, std::remove_cvref_t<E>, std::remove_cvref_t<F>>(std::forward<E>(e),
                                                                   std::forward<F>(filter));
}

/// What stands for a refused fold, so that the message stays the only one.
struct Refused : Leaf<DType::f32, Level::segment> {
  static constexpr bool kFolds = true;
  codegen::NodeId write(Walk&) const { return codegen::kNoNode; }
};

/// The fold of an expression and, where there is one, a filter.
template <FoldKind K, class E, class... F>
auto fold_of(E&& e, F&&... filter) {
  using Rule = ArgumentsRule<E, F...>;
  (void)Rule{};
  if constexpr (Rule::kFit) {
    return checked_fold<K>(std::forward<E>(e), std::forward<F>(filter)...);
  } else {
    return Refused();
  }
}

}  // namespace dsl

/// The filter of a fold: only elements for which `condition`, a bool expression of inputs and
/// parameters, is true take part.
template <class C, class... More>
auto where(C&& condition, const More&...) {
  (void)dsl::WhereRule<C, sizeof...(More)>{};
  if constexpr (Expression<C>) {
    (void)dsl::FilterRule<kTypeOf<C>, kLevelOf<C>>{};
    (void)dsl::NoScanRule<std::remove_cvref_t<C>::kScans>{};
    return dsl::Filter<std::remove_cvref_t<C>>(std::forward<C>(condition));
  } else {
    return dsl::Filter(dsl::Literal<DType::boolean, true>(1));
  }
}

/// The sum, in the type named at the top of this file.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto sum(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::sum>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The sum over the count, whatever the sum's size. Of integers it is exact and rounded once (up to
/// 2^32 elements), of equal floats it is that float.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto mean(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::mean>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The population variance: the mean of the squared deviations from the mean, in one pass. A
/// sample's: statistics.hpp.
template <class E, class... F>
  requires(dsl::FoldArguments<E, F...> && !(dsl::ADdof<F> || ...))
auto variance(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::variance>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The smallest element; NaN if any is NaN, and -0 < +0.
template <class E, class... F>
  requires dsl::ExtremeArguments<E, F...>
auto min(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::min>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The largest element; NaN if any is NaN, and -0 < +0.
template <class E, class... F>
  requires dsl::ExtremeArguments<E, F...>
auto max(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::max>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// Whether a bool expression is true for some element.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto any(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::any>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// Whether a bool expression is true for every element.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto all(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::all>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The index within its segment of the smallest element, i64; -1 of nothing. Of several equal ones
/// (-0 equals +0) it is the first's, and where there is a NaN the first NaN's.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto argmin(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::argmin>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The index within its segment of the largest element, i64; otherwise as argmin.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto argmax(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::argmax>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// The product, in the type of a sum of its elements; integers wrap. No error bound is proven for
/// floats.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto product(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::product>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// All integers combined by bitwise and, in their type.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto bit_and(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::bit_and>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// All integers combined by bitwise or, in their type.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto bit_or(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::bit_or>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// All integers combined by bitwise exclusive or, in their type.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto bit_xor(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::bit_xor>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// log(sum(exp(e))) of floats without overflow, in f32 or f64. NaN if any is, else +inf if any
/// is.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto logsumexp(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::logsumexp>(std::forward<E>(e), std::forward<F>(filter)...);
}

/// How many elements the segment has, or how many pass the filter; i64.
inline auto count() { return dsl::Count<dsl::NoFilter>(dsl::NoFilter{}); }
template <class F>
auto count(F&& filter) {
  (void)dsl::CountRule<F>{};
  if constexpr (dsl::AFilter<F>) {
    return dsl::Count<std::remove_cvref_t<F>>(std::forward<F>(filter));
  } else {
    return dsl::Refused();
  }
}

/// The sum of a * b, in the type of a sum. Integer products of elements of up to 32 bits do not
/// wrap.
template <class A, class B, class... F>
  requires dsl::FoldArguments<A, B, F...>
auto dot(A&& a, B&& b, F&&... filter) {
  (void)dsl::DotRule<A, B>{};
  if constexpr (dsl::DotRule<A, B>::kFit) {
    return sum(std::forward<A>(a) * std::forward<B>(b), std::forward<F>(filter)...);
  } else {
    return dsl::Refused();
  }
}

/// The Euclidean norm: the square root of the sum of squares, neither of which leaves a type's
/// range on the way. 0 of nothing.
template <class E, class... F>
  requires dsl::FoldArguments<E, F...>
auto norm(E&& e, F&&... filter) {
  return dsl::fold_of<dsl::FoldKind::norm>(std::forward<E>(e), std::forward<F>(filter)...);
}

}  // namespace chainfold
