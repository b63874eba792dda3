// The best guess of scans.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The default. Throws UserError(unsupported) for graphs with scans that no strategy serves.
PlanChoice scan_choice(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
