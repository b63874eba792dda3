// From a choice to a plan.
#pragma once

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The plan that follows from a choice; nothing where the choice is not legal for the graph, the
/// request (segment size, accuracy) or the target. The plan is verified by compile_plan(). Throws
/// UserError(unsupported) for requests that no plan meets.
std::optional<Plan> make_plan(const Graph& graph, const Target& target, const PlanRequest& request,
                              const PlanChoice& choice);

}  // namespace chainfold::codegen
