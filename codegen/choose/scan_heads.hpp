// look_back over tiles of all segments: when it serves better.
#pragma once

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// look_back over tiles of all segments, where they serve better than `plan`, which is legal, as
/// far as rules can tell.
std::optional<PlanChoice> better_by_heads(const Graph& graph, const Target& target,
                                          const PlanRequest& request, const Plan& plan);
/// The best guess of look_back over tiles of all segments, if it may be legal.
std::optional<PlanChoice> heads_scan_choice(const Graph& graph, const Target& target,
                                            const PlanRequest& request);

}  // namespace chainfold::codegen
