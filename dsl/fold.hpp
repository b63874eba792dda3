// Folds: from the elements of a segment to one value.
//
// Each takes, as its last argument, an optional filter cf::where(condition): elements for which it
// is false do not take part (whatever their value, NaN included). What is computed from folds and
// parameters, e.g. cf::sqrt(cf::mean(x * x)), is again one value a segment.
//
// Types. Sums of floats up to 32 bits are f32, of f64 f64, of signed integers i64, of unsigned
// integers, their sums and products, and bool u64; integer sums wrap. What lies directly below a
// sum, mean, dot or norm of integers does not wrap in a narrower type: `+ - *` (through one
// another, cf::let and the values of cf::select) are computed in the sum's type. mean, variance and
// norm are f32 for types up to 16 bits and f32, else f64. min and max keep the type. Empty
// segments, or those of which the filter leaves nothing: sum, count, dot and norm are 0, mean and
// variance NaN, min and max +inf and -inf or the type's largest and smallest value, any false, all
// true, argmin and argmax -1, product 1, logsumexp -inf, bit_and all ones, bit_or and bit_xor 0. A
// sum is never -0. Folds of one's own: monoid.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {
namespace dsl {

enum class FoldKind {
  sum,
  mean,
  variance,
  min,
  max,
  any,
  all,
  argmin,
  argmax,
  product,
  bit_and,
  bit_or,
  bit_xor,
  logsumexp,
  norm
};

struct NoFilter {
  static constexpr Level kLevel = Level::uniform;
  static constexpr int kNodes = 0;
  static constexpr int kDepth = 0;
  static constexpr bool kFolds = false;
  static constexpr bool kScans = false;
  int let_depth = 0;
  codegen::NodeId write(Walk&) const { return codegen::kNoNode; }
};

/// A condition on the elements; see cf::where. It is an argument of folds, not an expression.
template <class C>
struct Filter {
  static constexpr Level kLevel = C::kLevel;
  static constexpr int kNodes = C::kNodes;
  static constexpr int kDepth = C::kDepth;
  static constexpr bool kFolds = C::kFolds;
  static constexpr bool kScans = C::kScans;
  explicit Filter(C expression)
      : let_depth(expression.let_depth), condition(std::move(expression)) {}
  codegen::NodeId write(Walk& walk) const { return condition.write(walk); }
  int let_depth;
  C condition;
};

constexpr DType fold_type(FoldKind kind, DType in) noexcept {
  switch (kind) {
    case FoldKind::sum:
    case FoldKind::product: return sum_type(in);
    case FoldKind::argmin:
    case FoldKind::argmax: return DType::i64;
    case FoldKind::logsumexp: return compute_type(in);
    case FoldKind::bit_and:
    case FoldKind::bit_or:
    case FoldKind::bit_xor: return in;
    case FoldKind::mean:
    case FoldKind::norm:
    case FoldKind::variance: return mean_type(in);
    case FoldKind::min:
    case FoldKind::max: return in;
    case FoldKind::any:
    case FoldKind::all: return DType::boolean;
  }
  return in;
}

template <FoldKind K, class E>
inline constexpr DType kFoldType = K == FoldKind::sum ? kSumOf<E> : fold_type(K, E::kType);

/// What a fold consumes must not depend on a scan.
template <bool Scans>
struct NoScanRule {
  static_assert(!Scans,
                "chainfold: a fold of a scan, or a scan of one, is not supported; make the inner "
                "scan an output and fold it with a kernel of its own");
};

template <FoldKind K, DType T, Level L>
struct FoldRule {
  static constexpr bool kBits =
      K == FoldKind::bit_and || K == FoldKind::bit_or || K == FoldKind::bit_xor;
  static constexpr bool kOrder = K == FoldKind::argmin || K == FoldKind::argmax;
  static_assert(
      L != Level::state,
      "chainfold: a fold inside a monoid; its lift, merge and finalize compute from their "
      "arguments and literals alone");
  static_assert(!kOrder || T != DType::boolean,
                "chainfold: argmin and argmax are not defined on bool; cast it to a number, e.g. "
                "cf::argmax(cf::cast<std::int8_t>(b))");
  static_assert(!kBits || is_integer(T),
                "chainfold: cf::bit_and, cf::bit_or and cf::bit_xor fold integers; of bool "
                "expressions use cf::all and cf::any");
  static_assert(K != FoldKind::norm || T != DType::boolean,
                "chainfold: cf::norm is not defined on bool; cast it to a number, e.g. "
                "cf::norm(cf::cast<float>(b))");
  static_assert(K != FoldKind::logsumexp || is_float(T),
                "chainfold: cf::logsumexp needs a floating-point expression; cast the integer "
                "first, e.g. cf::logsumexp(cf::cast<float>(x))");
  static_assert(L != Level::segment,
                "chainfold: a fold of a value that is one for the segment already; fold an "
                "expression of the inputs");
  static_assert(
      L != Level::uniform,
      "chainfold: a fold of parameters or constants alone; fold an expression of the inputs");
  static_assert((K != FoldKind::min && K != FoldKind::max) || T != DType::boolean,
                "chainfold: min and max are not defined on bool; use cf::all and cf::any");
  static_assert((K != FoldKind::any && K != FoldKind::all) || T == DType::boolean,
                "chainfold: cf::any and cf::all take a bool expression; write a comparison, e.g. "
                "cf::any(x != 0)");
};

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
auto fold_of(E&& e, F&& filter = {}) {
  (void)FoldRule<K, kTypeOf<E>, kLevelOf<E>>{};
  (void)NoScanRule<std::remove_cvref_t<E>::kScans>{};
  return FoldOf<K, std::remove_cvref_t<E>, std::remove_cvref_t<F>>(std::forward<E>(e),
                                                                   std::forward<F>(filter));
}

template <class C>
struct WhereRule {
  static constexpr bool kIsExpression = Expression<C>;
  static_assert(kIsExpression,
                "chainfold: cf::where takes a bool expression of the inputs, e.g. x > 0");
};
template <DType T, Level L>
struct FilterRule {
  static_assert(
      T == DType::boolean,
      "chainfold: the condition of cf::where must be bool; write a comparison, e.g. x != 0");
  static_assert(L != Level::state, "chainfold: a filter inside a monoid; use cf::select there");
  static_assert(L != Level::segment,
                "chainfold: the condition of cf::where has one value for the segment; broadcasting "
                "a fold back to the elements is not supported yet");
};

template <class F>
struct IsFilter {
  static constexpr bool kIs = false;
};
template <class C>
struct IsFilter<Filter<C>> {
  static constexpr bool kIs = true;
};
template <class F>
concept AFilter = IsFilter<std::remove_cvref_t<F>>::kIs;

}  // namespace dsl

/// The filter of a fold: only elements for which `condition`, a bool expression of inputs and
/// parameters, is true take part.
template <class C>
auto where(C&& condition) {
  (void)dsl::WhereRule<C>{};
  if constexpr (Expression<C>) {
    (void)dsl::FilterRule<kTypeOf<C>, kLevelOf<C>>{};
    (void)dsl::NoScanRule<std::remove_cvref_t<C>::kScans>{};
    return dsl::Filter<std::remove_cvref_t<C>>(std::forward<C>(condition));
  }
}

/// The sum, in the type named at the top of this file.
template <Expression E>
auto sum(E&& e) {
  return dsl::fold_of<dsl::FoldKind::sum>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto sum(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::sum>(std::forward<E>(e), std::forward<F>(filter));
}

/// The sum over the count, whatever the sum's size. Of integers it is exact and rounded once (up to
/// 2^32 elements), of equal floats it is that float.
template <Expression E>
auto mean(E&& e) {
  return dsl::fold_of<dsl::FoldKind::mean>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto mean(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::mean>(std::forward<E>(e), std::forward<F>(filter));
}

/// The population variance: the mean of the squared deviations from the mean, in one pass.
template <Expression E>
auto variance(E&& e) {
  return dsl::fold_of<dsl::FoldKind::variance>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto variance(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::variance>(std::forward<E>(e), std::forward<F>(filter));
}

/// The smallest element; NaN if any is NaN, and -0 < +0.
template <Expression E>
auto min(E&& e) {
  return dsl::fold_of<dsl::FoldKind::min>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto min(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::min>(std::forward<E>(e), std::forward<F>(filter));
}

/// The largest element; NaN if any is NaN, and -0 < +0.
template <Expression E>
auto max(E&& e) {
  return dsl::fold_of<dsl::FoldKind::max>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto max(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::max>(std::forward<E>(e), std::forward<F>(filter));
}

/// Whether a bool expression is true for some element.
template <Expression E>
auto any(E&& e) {
  return dsl::fold_of<dsl::FoldKind::any>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto any(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::any>(std::forward<E>(e), std::forward<F>(filter));
}

/// Whether a bool expression is true for every element.
template <Expression E>
auto all(E&& e) {
  return dsl::fold_of<dsl::FoldKind::all>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto all(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::all>(std::forward<E>(e), std::forward<F>(filter));
}

/// The index within its segment of the smallest element, i64: of the first one where several are
/// equal (-0 equals +0), of the first NaN where there is one, -1 of nothing.
template <Expression E>
auto argmin(E&& e) {
  return dsl::fold_of<dsl::FoldKind::argmin>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto argmin(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::argmin>(std::forward<E>(e), std::forward<F>(filter));
}

/// The index within its segment of the largest element, i64; otherwise as argmin.
template <Expression E>
auto argmax(E&& e) {
  return dsl::fold_of<dsl::FoldKind::argmax>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto argmax(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::argmax>(std::forward<E>(e), std::forward<F>(filter));
}

/// The product, in the type of a sum; integers wrap. No error bound is proven for floats.
template <Expression E>
auto product(E&& e) {
  return dsl::fold_of<dsl::FoldKind::product>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto product(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::product>(std::forward<E>(e), std::forward<F>(filter));
}

/// All integers combined by bitwise and, in their type.
template <Expression E>
auto bit_and(E&& e) {
  return dsl::fold_of<dsl::FoldKind::bit_and>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto bit_and(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::bit_and>(std::forward<E>(e), std::forward<F>(filter));
}

/// All integers combined by bitwise or, in their type.
template <Expression E>
auto bit_or(E&& e) {
  return dsl::fold_of<dsl::FoldKind::bit_or>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto bit_or(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::bit_or>(std::forward<E>(e), std::forward<F>(filter));
}

/// All integers combined by bitwise exclusive or, in their type.
template <Expression E>
auto bit_xor(E&& e) {
  return dsl::fold_of<dsl::FoldKind::bit_xor>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto bit_xor(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::bit_xor>(std::forward<E>(e), std::forward<F>(filter));
}

/// log(sum(exp(e))) of floats without overflow, in f32 or f64. NaN if any is, else +inf if any
/// is.
template <Expression E>
auto logsumexp(E&& e) {
  return dsl::fold_of<dsl::FoldKind::logsumexp>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto logsumexp(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::logsumexp>(std::forward<E>(e), std::forward<F>(filter));
}

/// How many elements the segment has, or how many pass the filter; i64.
inline auto count() { return dsl::Count<dsl::NoFilter>(dsl::NoFilter{}); }
template <dsl::AFilter F>
auto count(F&& filter) {
  return dsl::Count<std::remove_cvref_t<F>>(std::forward<F>(filter));
}

/// The sum of a * b, in the type of a sum. Integer products of elements of up to 32 bits do not
/// wrap.
template <Expression A, Expression B>
auto dot(A&& a, B&& b) {
  return sum(std::forward<A>(a) * std::forward<B>(b));
}
template <Expression A, Expression B, dsl::AFilter F>
auto dot(A&& a, B&& b, F&& filter) {
  return sum(std::forward<A>(a) * std::forward<B>(b), std::forward<F>(filter));
}

/// The Euclidean norm: the square root of the sum of squares, neither of which leaves a type's
/// range on the way. 0 of nothing.
template <Expression E>
auto norm(E&& e) {
  return dsl::fold_of<dsl::FoldKind::norm>(std::forward<E>(e));
}
template <Expression E, dsl::AFilter F>
auto norm(E&& e, F&& filter) {
  return dsl::fold_of<dsl::FoldKind::norm>(std::forward<E>(e), std::forward<F>(filter));
}

}  // namespace chainfold
