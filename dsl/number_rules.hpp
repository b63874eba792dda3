// Functions of numbers alone, which C++ computes: refused, with a message that says what to write.
// Each takes a pack, so that a function of numbers that is in scope beside it is the better match.
#pragma once

#include <type_traits>

#include "chainfold/dsl/expr.hpp"

namespace chainfold {
namespace dsl {

template <bool Any>
struct NumbersAloneRule {
  static_assert(Any,
                "chainfold: a function of numbers alone, which have no part in a kernel; use that "
                "of C++, e.g. std::sqrt, or make one operand an expression, e.g. of "
                "auto x = cf::input<float>(\"x\")");
};
/// Numbers of C++ and nothing else.
template <class... A>
concept NumbersAlone = sizeof...(A) > 0 && (std::is_arithmetic_v<A> && ...);

/// Refuses such a call.
template <class... A>
double refused_numbers() {
  (void)NumbersAloneRule<(Expression<A> || ...)>{};
  return 0;
}

}  // namespace dsl

#define OPERATION(...)
#define FUNCTION(name, call, ...)        \
  template <class... A>                  \
    requires dsl::NumbersAlone<A...>     \
  auto call(const A&...) {               \
    return dsl::refused_numbers<A...>(); \
  }
#include "chainfold/codegen/base/op_table.inc"

template <class... A>
  requires dsl::NumbersAlone<A...>
auto pow(const A&...) {
  return dsl::refused_numbers<A...>();
}
template <class... A>
  requires dsl::NumbersAlone<A...>
auto fma(const A&...) {
  return dsl::refused_numbers<A...>();
}

}  // namespace chainfold
