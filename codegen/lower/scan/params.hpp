// What launches of tiles are given.
#pragma once

#include "chainfold/codegen/base/size_expr.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

TileParams declare_tiles(Program& program, const Graph& graph, const Plan& plan);

}  // namespace chainfold::codegen
