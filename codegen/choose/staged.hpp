// The best guess of staged segments, and when they are worth it.
#pragma once

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

std::optional<PlanChoice> staged_choice(const Graph& graph, const Target& target,
                                        const PlanRequest& request);
/// Whether segments of this size are the better for being staged, as far as rules can tell.
bool gains_from_stages(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
