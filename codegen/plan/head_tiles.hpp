// Plans by head tiles: folds over segments that a condition begins.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// Whether it has to be known where heads are: elements ask for their index, or values of segments
/// for their length.
bool asks_heads(const Graph& graph);
/// Bytes of shared memory of a tile: a state and a flag an element, and where asked for a place.
std::int64_t head_tile_bytes(const Plan& plan, const Graph& graph);

/// Its row of the table of strategies.
StrategyRow head_tiles_strategy();

}  // namespace chainfold::codegen
