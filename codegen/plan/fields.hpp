// The decisions that a strategy's plans know, by the names that their texts have.
#pragma once

#include <span>
#include <string_view>

#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

struct PlanField {
  std::string_view name;
  int PlanChoice::* value;
  bool told_at_zero = true;  ///< a text has it even if it is 0
};

/// In the order of the strategy's texts; `mma` or `simt` ends every text and is none of them.
std::span<const PlanField> fields_of(Strategy strategy);

}  // namespace chainfold::codegen
