// The lowering of the published reductions by columns of segments of 16.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_published_columns(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
