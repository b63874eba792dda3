// What all best guesses begin with.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What the best guesses begin with: warps, unit, and the loads that a lane issues at once.
PlanChoice any_choice(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
