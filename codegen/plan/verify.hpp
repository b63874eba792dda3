// What every plan keeps to.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Throws InternalError if the plan is not legal for the graph and the target.
void verify(const Plan& plan, const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
