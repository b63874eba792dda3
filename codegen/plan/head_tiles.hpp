// Plans by head tiles: folds over segments that a condition begins.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// Bytes of shared memory of a tile: a state and a flag an element, and the place of a head.
std::int64_t head_tile_bytes(const Plan& plan);

/// Its row of the table of strategies.
StrategyRow head_tiles_strategy();

}  // namespace chainfold::codegen
