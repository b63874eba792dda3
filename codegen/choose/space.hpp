// The choices worth measuring.
#pragma once

#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Choices worth measuring, each with another plan, the default one first. At most some dozens: the
/// default's neighbours in one or two decisions, since the decisions hardly depend on each other.
std::vector<PlanChoice> plan_space(const Graph& graph, const Target& target,
                                   const PlanRequest& request);

}  // namespace chainfold::codegen
