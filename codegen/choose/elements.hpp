// The best guess for segments of one element.
#pragma once

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

PlanChoice elements_choice(const Target& target);

}  // namespace chainfold::codegen
