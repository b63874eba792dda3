// The default plan.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What choose_plan takes.
PlanChoice default_choice(const Graph& graph, const Target& target, const PlanRequest& request);
/// The default plan, chosen without measuring. Throws UserError(unsupported) for requests that no
/// plan meets.
Plan choose_plan(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
