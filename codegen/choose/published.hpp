// Published strategies that are worth measuring.
#pragma once

#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// A few choices worth measuring of each that serves, for plan_space.
std::vector<PlanChoice> published_choices(const Graph& graph, const Target& target,
                                          const PlanRequest& request);
std::vector<PlanChoice> published_scan_choices(const Graph& graph, const Target& target,
                                               const PlanRequest& request);

}  // namespace chainfold::codegen
