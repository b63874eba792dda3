// From a graph and its plan to a program: the lowering of its strategy.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Before: a verified graph and plan. After: a program whose launches write every output; buffers
/// are the graph's inputs, outputs, then scratch arrays; parameters carry their roles.
Program lower(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
