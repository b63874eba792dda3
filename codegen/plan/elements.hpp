// Plans of segments of one element.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Whether segments are single elements, of which a load holds several; of vectors' lanes rows do.
bool are_elements(const Target& target, const PlanRequest& request);
bool place_elements(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                    const PlanRequest& request, int widest);

}  // namespace chainfold::codegen
