// The lowerings of scans whose segments are a warp's or a block's.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

Program lower_scan_tile(const Graph& graph, const Plan& plan, const Target& target);
Program lower_scan_run(const Graph& graph, const Plan& plan, const Target& target);
Program lower_scan_block(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
