// The lowering of folds over segments that a condition begins, found as they are folded.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_head_tiles(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
