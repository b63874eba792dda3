// Statistics of deviations from the mean, beside cf::variance (fold.hpp).
//
//     auto spread = cf::over(cf::segments(250), cf::stddev(x), cf::skewness(x), cf::kurtosis(x));
//     auto sample = cf::over(cf::segments(250), cf::variance(x, cf::ddof(1)));
//     auto common = cf::over(cf::whole(), cf::covariance(x, y), cf::correlation(x, y));
//
// They divide by n, the number of elements that pass the filter, as cf::variance does. Behind the
// expressions cf::ddof(d) makes it n - d, and a filter comes last. These are NaN:
//
//     a statistic over n - d of no more than d elements
//     a correlation, skewness or kurtosis where all values are the same
//     any of them where an element is not finite
//
// Types. The result is f32 for types up to 16 bits and f32, else f64; of two expressions the wider.
// Statistics are computed in f64 from deviations, whatever the offset. Means of f64 and of 64-bit
// integers are kept as differences from the first element. (A 64-bit integer beside a float is
// converted to f64 before.) Roots, correlations, skewness and kurtosis do not overflow on the way.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/fold.hpp"

namespace chainfold {

/// Degrees of freedom that a statistic takes from n: 1 for a sample's.
inline Ddof ddof(std::int64_t value) { return {value}; }

namespace dsl {

enum class Statistic { variance, stddev, covariance, correlation, skewness, kurtosis };
constexpr bool is_of_two(Statistic s) noexcept {
  return s == Statistic::covariance || s == Statistic::correlation;
}
constexpr bool takes_ddof(Statistic s) noexcept {
  return s == Statistic::variance || s == Statistic::stddev || s == Statistic::covariance;
}

template <DType T>
struct StatisticTypeRule {
  static_assert(T != DType::boolean,
                "chainfold: statistics of bool; cast it to a number, e.g. "
                "cf::stddev(cf::cast<float>(b))");
};

/// Statistic S of one expression, or of A and B, over the elements that pass F.
template <Statistic S, DType T, class A, class B, class F>
struct StatisticOf : Operation<T, Level::segment, A, B, F> {
  StatisticOf(A x, B y, Ddof taken, F where)
      : Operation<T, Level::segment, A, B, F>(
            std::max({x.let_depth, y.let_depth, where.let_depth})),
        a(std::move(x)),
        b(std::move(y)),
        freedom(taken),
        filter(std::move(where)) {}
  static constexpr bool kFolds = true;
  codegen::NodeId write(Walk& walk) const {
    codegen::GraphBuilder& builder = walk.builder;
    const codegen::NodeId x = a.write(walk), y = b.write(walk), condition = filter.write(walk);
    const auto taken = [&] {
      return builder.literal(DType::i64, static_cast<codegen::Bits>(freedom.value));
    };
    switch (S) {
      case Statistic::variance: return builder.variance(x, condition, taken());
      case Statistic::stddev: return builder.stddev(x, condition, taken());
      case Statistic::covariance: return builder.covariance(x, y, condition, taken());
      case Statistic::correlation: return builder.correlation(x, y, condition);
      case Statistic::skewness: return builder.skewness(x, condition);
      case Statistic::kurtosis: return builder.kurtosis(x, condition);
    }
    return codegen::kNoNode;
  }
  A a;
  B b;
  Ddof freedom;
  F filter;
};

template <class E>
constexpr void check_statistic() {
  (void)FoldLevelRule<kLevelOf<E>>{};
  (void)NoScanRule<std::remove_cvref_t<E>::kScans>{};
  (void)StatisticTypeRule<kTypeOf<E>>{};
}

/// The arguments behind the expressions: cf::ddof where the statistic takes it, and a filter.
template <Statistic S, class... Last>
inline constexpr bool kStatisticEnds = sizeof...(Last) == 0;
template <Statistic S, class L>
inline constexpr bool kStatisticEnds<S, L> = AFilter<L> || (ADdof<L> && takes_ddof(S));
template <Statistic S, class D, class L>
inline constexpr bool kStatisticEnds<S, D, L> = ADdof<D> && AFilter<L> && takes_ddof(S);

template <Statistic S, class... A>
inline constexpr bool kStatisticArguments = false;
template <Statistic S, class E, class... Last>
  requires(!is_of_two(S) && Expression<E>)
inline constexpr bool kStatisticArguments<S, E, Last...> = kStatisticEnds<S, Last...>;
template <Statistic S, class A, class B, class... Last>
  requires(is_of_two(S) && Expression<A> && Expression<B>)
inline constexpr bool kStatisticArguments<S, A, B, Last...> = kStatisticEnds<S, Last...>;

template <Statistic S, bool Fits>
struct StatisticArgumentsRule {
  static_assert(Fits || is_of_two(S) || !takes_ddof(S),
                "chainfold: this statistic takes one expression of the inputs, if wanted "
                "cf::ddof(1), and at last, if wanted, cf::where(condition), e.g. "
                "cf::stddev(x, cf::ddof(1), cf::where(x > 0))");
  static_assert(Fits || is_of_two(S) || takes_ddof(S),
                "chainfold: cf::skewness and cf::kurtosis take one expression of the inputs and, "
                "if wanted, cf::where(condition), e.g. cf::skewness(x, cf::where(x > 0))");
  static_assert(Fits || !is_of_two(S) || !takes_ddof(S),
                "chainfold: cf::covariance takes two expressions of the inputs, if wanted "
                "cf::ddof(1), and at last, if wanted, cf::where(condition), e.g. "
                "cf::covariance(x, y, cf::ddof(1))");
  static_assert(Fits || !is_of_two(S) || takes_ddof(S),
                "chainfold: cf::correlation takes two expressions of the inputs and, if wanted, "
                "cf::where(condition), e.g. cf::correlation(x, y)");
};

inline NoFilter filter_among() { return {}; }
template <class L, class... More>
auto filter_among(L&& last, More&&... more) {
  if constexpr (ADdof<L>) {
    return filter_among(std::forward<More>(more)...);
  } else {
    return std::remove_cvref_t<L>(std::forward<L>(last));
  }
}
inline Ddof ddof_among() { return {}; }
template <class L, class... More>
Ddof ddof_among(const L& last, const More&... more) {
  if constexpr (ADdof<L>) {
    return last;
  } else {
    return ddof_among(more...);
  }
}

template <Statistic S, class A, class B, class... Last>
auto statistic_of_two(const A& a, const B& b, const Last&... last) {
  check_statistic<A>();
  check_statistic<B>();
  auto filter = filter_among(last...);
  constexpr DType kIn = promote(mean_type(kTypeOf<A>), mean_type(kTypeOf<B>));
  return StatisticOf<S, kIn, A, B, decltype(filter)>(a, b, ddof_among(last...), filter);
}

template <Statistic S, class A, class... Last>
auto statistic(const A& a, const Last&... last) {
  (void)StatisticArgumentsRule<S, kStatisticArguments<S, A, Last...>>{};
  if constexpr (!kStatisticArguments<S, A, Last...>) {
    return Refused();
  } else if constexpr (is_of_two(S)) {
    return statistic_of_two<S>(a, last...);
  } else {
    check_statistic<A>();
    auto filter = filter_among(last...);
    return StatisticOf<S, mean_type(kTypeOf<A>), A, NoFilter, decltype(filter)>(
        a, NoFilter{}, ddof_among(last...), filter);
  }
}

}  // namespace dsl

/// The variance over n - d, cf::variance(x, cf::ddof(1)): NaN of no more than d elements.
template <class A, class D, class... Last>
  requires(dsl::ADdof<D> || (dsl::ADdof<Last> || ...))
auto variance(const A& e, const D& taken, const Last&... last) {
  return dsl::statistic<dsl::Statistic::variance>(e, taken, last...);
}
/// The root of the variance, cf::stddev(x) or cf::stddev(x, cf::ddof(1)).
template <class A, class... Last>
auto stddev(const A& e, const Last&... last) {
  return dsl::statistic<dsl::Statistic::stddev>(e, last...);
}
/// The mean product of the deviations of two expressions, cf::covariance(x, y).
template <class A, class... Last>
auto covariance(const A& a, const Last&... last) {
  return dsl::statistic<dsl::Statistic::covariance>(a, last...);
}
/// Pearson's correlation of two expressions, from -1 to 1.
template <class A, class... Last>
auto correlation(const A& a, const Last&... last) {
  return dsl::statistic<dsl::Statistic::correlation>(a, last...);
}
/// The skewness of a population: the mean cube of deviations over their root mean square cubed.
template <class A, class... Last>
auto skewness(const A& e, const Last&... last) {
  return dsl::statistic<dsl::Statistic::skewness>(e, last...);
}
/// The excess kurtosis of a population: the mean fourth power of deviations over the variance
/// squared, less 3.
template <class A, class... Last>
auto kurtosis(const A& e, const Last&... last) {
  return dsl::statistic<dsl::Statistic::kurtosis>(e, last...);
}

}  // namespace chainfold
