// Plans of segments of one element.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Whether segments are single elements, of which a load holds several. Where lanes are elements of
/// vectors, rows serve them.
bool are_elements(const Target& target, const PlanRequest& request);

/// Its row of the table of strategies.
StrategyRow elements_strategy();

}  // namespace chainfold::codegen
