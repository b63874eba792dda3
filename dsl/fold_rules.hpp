// The kinds of folds, and the mistakes for which folds are refused: a rule with its message is a
// class (ops.hpp says why).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {

/// What cf::ddof returns (statistics.hpp).
struct Ddof {
  std::int64_t value = 0;
};

namespace dsl {

template <class T>
concept ADdof = std::same_as<std::remove_cvref_t<T>, Ddof>;

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

/// The type of a fold of E.
template <FoldKind K, class E>
inline constexpr DType kFoldType = K == FoldKind::sum ? kSumOf<E> : fold_type(K, E::kType);

/// What a fold consumes must not depend on a scan.
template <bool Scans>
struct NoScanRule {
  static_assert(!Scans,
                "chainfold: a fold of a scan, or a scan of one, is not supported; make the inner "
                "scan an output and fold it with a kernel of its own");
};

/// What a fold consumes is of elements.
template <Level L>
struct FoldLevelRule {
  static_assert(L != Level::segment,
                "chainfold: a fold of a value that is one for the segment already; fold an "
                "expression of the inputs");
  static_assert(
      L != Level::uniform,
      "chainfold: a fold of parameters or constants alone; fold an expression of the inputs");
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
  static_assert((K != FoldKind::min && K != FoldKind::max) || T != DType::boolean,
                "chainfold: min and max are not defined on bool; use cf::all and cf::any");
  static_assert((K != FoldKind::any && K != FoldKind::all) || T == DType::boolean,
                "chainfold: cf::any and cf::all take a bool expression; write a comparison, e.g. "
                "cf::any(x != 0)");
};

template <class C, std::size_t More>
struct WhereRule {
  static constexpr bool kIsExpression = Expression<C>;
  static_assert(kIsExpression,
                "chainfold: cf::where takes a bool expression of the inputs, e.g. x > 0");
  static_assert(More == 0,
                "chainfold: cf::where takes one condition; combine several by && or ||, e.g. "
                "cf::where(x > 0 && y > 0)");
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

/// Whether F is a bool expression.
template <class F>
constexpr bool is_condition() {
  if constexpr (Expression<F>) {
    return kTypeOf<F> == DType::boolean;
  } else {
    return false;
  }
}

/// The arguments of a fold: an expression E and, where there is one more, a filter F. F is void
/// where there is none; More is the number of arguments behind it.
template <class E, class F, std::size_t More>
struct FoldArgumentsRule {
  static constexpr bool kFilterFirst = AFilter<E>;
  static constexpr bool kNothing = !Expression<E> && !kFilterFirst;
  static constexpr bool kCondition = !kNothing && !kFilterFirst && is_condition<F>();
  static constexpr bool kNoFilter =
      !kNothing && !kFilterFirst && !kCondition && !std::is_void_v<F> && !AFilter<F>;
  static constexpr bool kTooMany = !kNothing && !kFilterFirst && AFilter<F> && More > 0;
  static constexpr bool kFit = !kFilterFirst && !kNothing && !kCondition && !kNoFilter && !kTooMany;
  static_assert(!kFilterFirst,
                "chainfold: a filter in the place of the expression of a fold; the expression "
                "comes first, e.g. cf::sum(x, cf::where(x > 0)), and "
                "cf::count(cf::where(x > 0)) counts");
  static_assert(!kNothing,
                "chainfold: a fold of what is no expression; declare the data as an input, e.g. "
                "auto x = cf::input<float>(\"x\"); cf::sum(x), and bind it by name in run (the "
                "type of a result is chosen by a cast, cf::cast<double>(cf::sum(x)))");
  static_assert(!kCondition,
                "chainfold: a condition beside the expression of a fold; make a filter of it, "
                "e.g. cf::sum(x, cf::where(x > 0))");
  static_assert(!kNoFilter,
                "chainfold: a fold takes one expression and, if wanted, cf::where(condition); "
                "combine several expressions first, e.g. cf::sum(x * y), and fold others beside "
                "it");
  static_assert(!kTooMany,
                "chainfold: a fold takes one filter; combine the conditions, e.g. "
                "cf::where(x > 0 && y > 0)");
};

/// FoldArgumentsRule of the arguments as they are.
template <class E, class... F>
struct ArgumentsOf {
  using Rule = FoldArgumentsRule<E, void, 0>;
};
template <class E, class F, class... More>
struct ArgumentsOf<E, F, More...> {
  using Rule = FoldArgumentsRule<E, std::remove_cvref_t<F>, sizeof...(More)>;
};
template <class... A>
using ArgumentsRule = typename ArgumentsOf<A...>::Rule;

template <class F>
struct CountRule {
  static constexpr bool kCondition = is_condition<F>();
  static_assert(!kCondition,
                "chainfold: cf::count of a condition; make a filter of it, e.g. "
                "cf::count(cf::where(x > 0))");
  static_assert(kCondition || AFilter<F>,
                "chainfold: cf::count takes no expression: cf::count() counts the elements of the "
                "segment, cf::count(cf::where(condition)) those that pass");
};

template <class A, class B>
struct DotRule {
  static constexpr bool kFit = Expression<A> && Expression<B>;
  static_assert(kFit,
                "chainfold: cf::dot takes two expressions of the inputs and, if wanted, "
                "cf::where(condition), e.g. cf::dot(x, y, cf::where(x > 0))");
};

/// Arguments that are meant for a fold: one, or several with an expression or a filter among them.
template <class E, class... F>
concept FoldArguments = sizeof...(F) == 0 || Expression<E> || AFilter<E> || (AFilter<F> || ...);
/// The same for cf::min and cf::max, which with two expressions give the smaller and the larger.
template <class E, class... F>
concept ExtremeArguments = sizeof...(F) == 0 || AFilter<E> || (AFilter<F> || ...);

}  // namespace dsl
}  // namespace chainfold
