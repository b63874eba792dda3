// Why a choice of a plan is not legal, in words for whoever pinned it.
#pragma once

#include <string>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Tells which decisions of a choice that is not legal are out of range, and what they might be
/// instead. An example: "warps=64 is out of range (1, 2, 4, 8, 16 or 32)".
/// Where one decision mends the choice, the first that does is told. Where it takes several, each
/// range holds beside some legal choice of the others. Ranges are what make_plan() takes for this
/// graph, target and request, so that nobody has to repeat its rules. Where no plan of the strategy
/// is legal for the request's promises, they are what it takes for the laxest ones. The text is
/// empty where no plan is legal for either, or this one is for the laxest: then describe() says
/// why.
std::string diagnose(const Graph& graph, const Target& target, const PlanRequest& request,
                     const PlanChoice& choice);

}  // namespace chainfold::codegen
