// The best guess of parts: which segments are cut into them, how many, and by which blocks.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Whether the default of such segments is parts: of the whole input, of long ones, and of few that
/// are not so long.
[[nodiscard]] bool takes_parts(const Graph& graph, const Target& target,
                               const PlanRequest& request);
PlanChoice parts_choice(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
