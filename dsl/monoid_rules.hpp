// The mistakes for which monoids and their folds are refused: a rule with its message is a class
// (ops.hpp says why).
#pragma once

#include <cstddef>

#include "chainfold/dsl/expr.hpp"

namespace chainfold::dsl {

template <bool Takes>
struct LiftArgumentsRule {
  static_assert(Takes,
                "chainfold: cf::fold gets another number of operands than the monoid's lift takes");
};
template <bool Takes>
struct MergeArgumentsRule {
  static_assert(Takes, "chainfold: a monoid's merge takes two states, [](auto a, auto b) {...}");
};
template <bool Takes>
struct FinalizeArgumentsRule {
  static_assert(Takes, "chainfold: a monoid's finalize takes one state, [](auto s) {...}");
};
template <bool IsExpression>
struct FinalizeRule {
  static_assert(IsExpression,
                "chainfold: a monoid's finalize must return one expression of its state's fields, "
                "e.g. return cf::get<0>(s)");
};
template <std::size_t Given, std::size_t Wanted>
struct FieldCountRule {
  static_assert(Given != 0 || Wanted == 0,
                "chainfold: a monoid's lift and merge must return fields, e.g. "
                "return cf::fields(p, q)");
  static_assert(Given == 0 || Given == Wanted,
                "chainfold: a monoid's lift or merge returns another number of fields than its "
                "state has");
};
template <Level L>
struct FieldLevelRule {
  static_assert(
      L == Level::state || L == Level::uniform,
      "chainfold: an input or a fold inside a monoid; its lift, merge and finalize compute "
      "from their arguments and literals alone: give the input to cf::fold as an operand");
};
template <DType Given, DType Wanted>
struct FieldTypeRule {
  static constexpr bool kSame = (Given == DType::boolean) == (Wanted == DType::boolean);
  static_assert(
      kSame && widens(Given, Wanted),
      "chainfold: a field that a monoid's lift or merge returns has another type than its "
      "state's; cast it, e.g. cf::cast<std::int64_t>(p)");
};

template <bool IsExpression, Level L>
struct MonoidOperandRule {
  static_assert(IsExpression,
                "chainfold: cf::fold takes a monoid, expressions of the inputs and at last, if "
                "wanted, cf::where(condition)");
  static_assert(L != Level::state, "chainfold: a fold inside a monoid");
};

template <bool MonoidFirst>
struct FoldOrderRule {
  static_assert(MonoidFirst,
                "chainfold: cf::fold takes a monoid first and then expressions of the inputs, "
                "e.g. cf::fold(cf::monoid(...), x)");
  static_assert(!MonoidFirst,
                "chainfold: cf::fold of a monoid alone; name what it folds, e.g. cf::fold(m, x)");
};

}  // namespace chainfold::dsl
