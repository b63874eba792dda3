// What serves pointers of less than the best alignment.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What serves pointers of less than the best alignment, and is legal for them if the choice is for
/// the best. Segments that wide loads would read are staged where only narrow ones are allowed.
/// Scans whose runs are too short then have the default for that alignment.
PlanChoice choice_for_alignment(const Graph& graph, const Target& target,
                                const PlanRequest& request, const PlanChoice& choice);

}  // namespace chainfold::codegen
