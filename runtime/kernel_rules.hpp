// Messages of the C++ compiler for calls of kernels that cannot be meant.
#pragma once

#include <concepts>
#include <type_traits>

#include "chainfold/runtime/launch/bindings.hpp"

namespace chainfold::runtime {

/// The types that run<...> names.
template <class... Out>
struct RunTypesRule {
  static_assert(sizeof...(Out) > 0,
                "chainfold: run names the types of the outputs, e.g. kernel.run<float>({{\"x\", "
                "x}}); without them it is for a kernel of type auto, auto kernel = "
                "cf::compile(cf::over(...)), which knows them");
};

/// Whether A... is one list of bindings.
template <class... A>
concept NamedBindings = sizeof...(A) == 1 && (std::convertible_to<const A&, CallBindings> && ...);

template <class... A>
struct NamedRule {
  static constexpr bool kNamed = NamedBindings<A...>;
  static_assert(kNamed,
                "chainfold: data is bound by the name of its input, in a list in braces, e.g. "
                "kernel.run<float>({{\"x\", samples}})");
};

/// The types of a typed kernel's outputs beside those that a call names.
template <bool AsMany, bool Same>
struct OutputTypesRule {
  static_assert(AsMany,
                "chainfold: the call names another number of outputs than the expression has; "
                "leave the types out, kernel.run({{\"x\", samples}})");
  static_assert(!AsMany || Same,
                "chainfold: the call names other output types than the expression has; leave them "
                "out, kernel.run({{\"x\", samples}}), or cast the output in the expression, e.g. "
                "cf::cast<double>(cf::sum(x))");
};

template <class E>
struct CompileRule {
  static constexpr bool kComputation = std::is_void_v<E>;
  static_assert(kComputation,
                "chainfold: cf::compile takes what cf::over returns, e.g. "
                "cf::compile(cf::over(cf::whole(), cf::sum(x)))");
};

}  // namespace chainfold::runtime
