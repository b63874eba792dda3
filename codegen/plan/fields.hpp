// The decisions that a strategy's plans know, by the names that their texts have.
#pragma once

#include <string_view>

#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

struct PlanField {
  std::string_view name;
  int PlanChoice::* value;
  bool told_at_zero = true;  ///< a text has it even if it is 0
};

}  // namespace chainfold::codegen
