// The lowering of scans by blocks that stay and read ahead.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_look_ahead(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
