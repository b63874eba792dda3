// The lowering of folds over segments that data decide, by a merge path.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_merge_path(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
