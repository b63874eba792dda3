// cf::lag: the value that an expression has some elements before.
#pragma once

#include <type_traits>
#include <utility>

#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/literal.hpp"
#include "chainfold/dsl/ops.hpp"

namespace chainfold {
namespace dsl {

/// A value of elements before.
template <class E, class I>
struct Lag : Operation<E::kType, Level::element, E, I> {
  Lag(E value, int elements, I first)
      : Operation<E::kType, Level::element, E, I>(value.let_depth),
        e(std::move(value)),
        distance(elements),
        initial(std::move(first)) {}
  codegen::NodeId write(Walk& walk) const {
    const codegen::NodeId value = e.write(walk);
    return walk.builder.lag(value, distance, initial.write(walk));
  }
  E e;
  int distance;
  I initial;
};

template <Level E, Level I>
struct LagRule {
  static_assert(E == Level::element,
                "chainfold: cf::lag takes an expression of the inputs, of which elements before "
                "are meant");
  static_assert(I == Level::uniform,
                "chainfold: the third argument of cf::lag is a number or a parameter, which stands "
                "for what lies before the first element");
};

}  // namespace dsl

/// The value that `x` has `distance` elements before, whatever the segments; `initial` where there
/// is no such element: a number, or an expression of parameters. So far it is for the condition of
/// cf::heads. Throws UserError(invalid_argument) for a distance below 1, and, of a number that
/// x's type does not hold, as any operation does.
template <Expression E, class I>
auto lag(const E& x, int distance, const I& initial) {
  const auto first = dsl::as_expression<E::kType, E::kType>(initial);
  using First = std::remove_cvref_t<decltype(first)>;
  (void)dsl::LagRule<E::kLevel, First::kLevel>{};
  return dsl::Lag<E, First>(x, distance, first);
}

}  // namespace chainfold
