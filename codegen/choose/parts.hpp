// How segments are shared out: which are cut into parts, how many, and how long they are.
#pragma once

#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

/// Whether the default of such segments is parts: of everything, of long ones, and of few that are
/// not so long.
[[nodiscard]] bool takes_parts(const Graph& graph, const Target& target,
                               const PlanRequest& request);

/// What of a plan by parts follows from its choice and the widest loads.
void place_parts(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                 const Widest& widest);

}  // namespace chainfold::codegen
