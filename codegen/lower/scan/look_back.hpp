// The lowering of scans whose blocks wait for each other.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_look_back(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
