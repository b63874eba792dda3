// The lowering of the published reductions of irregular segments, which are padded.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_published_padded(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
