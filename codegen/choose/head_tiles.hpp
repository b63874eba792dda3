// The best guess of head tiles.
#pragma once

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Nothing where they do not serve.
std::optional<PlanChoice> head_tiles_choice(const Graph& graph, const Target& target,
                                            const PlanRequest& request);

}  // namespace chainfold::codegen
