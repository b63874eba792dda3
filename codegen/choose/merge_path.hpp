// The best guess of a merge path.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

PlanChoice merge_path_choice(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
