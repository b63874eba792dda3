// Plans of scans, out of their choices.
#pragma once

#include <optional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The plan of a scan that follows from a choice, out of `plan`, which holds the request. Nothing
/// where it is not legal or errs more than `allowed` units of each fold.
std::optional<Plan> make_scan_plan(const Plan& plan, const PlanChoice& choice, const Graph& graph,
                                   const Target& target, const PlanRequest& request,
                                   const std::vector<double>& allowed);
/// What of a scan's plan follows from its choice; `widest` elements a load at most. False where the
/// choice is not legal.
bool derive_scan(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                 int widest);

}  // namespace chainfold::codegen
