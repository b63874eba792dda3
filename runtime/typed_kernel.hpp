// TypedKernel: a kernel that knows the types of its outputs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include "chainfold/dsl/over.hpp"
#include "chainfold/runtime/kernel.hpp"
#include "chainfold/runtime/kernel_rules.hpp"

namespace chainfold {
namespace runtime {

/// Whether element types A... are those of B..., under whatever names, or of the alternatives C...
template <class A, class B, class C = B>
struct SameElements : std::false_type {};
template <class... A, class... B, class... C>
  requires(sizeof...(A) == sizeof...(B))
struct SameElements<std::tuple<A...>, std::tuple<B...>, std::tuple<C...>>
    : std::bool_constant<((Element<A> && (kDType<ElementOr<A>> == kDType<B> ||
                                          kDType<ElementOr<A>> == kDType<C>)) &&
                          ...)> {};

}  // namespace runtime

/// A kernel whose output types the C++ compiler knows. It is a copy of a Kernel, but run needs no
/// types, and refuses wrong ones at compile time:
///
///     auto kernel = cf::compile(cf::over(cf::segments(64), cf::mean(x), cf::max(x)));
///     auto [mean, max] = kernel.run({{"x", samples}});
template <class... Out>
class TypedKernel : public Kernel {
 public:
  explicit TypedKernel(Kernel kernel) : Kernel(std::move(kernel)) {}

  /// Kernel::run; types may be named, and then are those of the outputs.
  template <class... Named>
  auto run(const CallBindings& bindings) const {
    if constexpr (sizeof...(Named) == 0) {
      return Kernel::run<Out...>(bindings);
    } else {
      check_named<Named...>();
      return Kernel::run<Named...>(bindings);
    }
  }
  /// Refused: bindings have names.
  template <class... Named, class... A>
    requires(!runtime::NamedBindings<A...>)
  std::tuple<HostVector<Out>...> run(const A&...) const {
    (void)runtime::NamedRule<A...>{};
    return {};
  }

  /// Kernel::run_into; ranges of other types do not compile.
  std::int64_t run_into(const CallBindings& bindings, const Outputs& outputs) const {
    return Kernel::run_into(bindings, outputs);
  }
  template <runtime::OutputArray... R>
    requires(sizeof...(R) > 0)
  std::int64_t run_into(const CallBindings& bindings, R&&... arrays) const {
    constexpr bool kMany = sizeof...(R) == sizeof...(Out);
    constexpr bool kSame =
        runtime::SameElements<std::tuple<std::ranges::range_value_t<R>...>, std::tuple<Out...>,
                              std::tuple<HostElement<Out>...>>::value;
    (void)runtime::OutputTypesRule<kMany, kSame>{};
    ((void)runtime::OutputArrayRule<kWritable<R>>{}, ...);
    if constexpr (kMany && kSame && (kWritable<R> && ...)) {
      Outputs outputs;
      (outputs.push_back(OutputBinding(std::ranges::data(arrays), kDType<Out>,
                                       static_cast<std::int64_t>(std::ranges::size(arrays)))),
       ...);
      return Kernel::run_into(bindings, outputs);
    }
    return 0;
  }

 private:
  /// What vectors of an output type hold.
  template <class T>
  using HostElement = typename HostVector<T>::value_type;
  template <class R>
  static constexpr bool kWritable =
      !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
  template <class... Named>
  static void check_named() {
    constexpr bool kMany = sizeof...(Named) == sizeof...(Out);
    (void)runtime::OutputTypesRule<
        kMany, runtime::SameElements<std::tuple<Named...>, std::tuple<Out...>>::value>{};
  }
};

/// compile() of a computation whose output types are known: what cf::over returns.
template <class... Out>
TypedKernel<Out...> compile(const TypedComputation<Out...>& computation,
                            const Options& options = {}) {
  return TypedKernel<Out...>(compile(static_cast<const Computation&>(computation), options));
}

}  // namespace chainfold
