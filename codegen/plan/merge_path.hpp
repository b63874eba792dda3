// Plans by a merge path: folds over segments that data decide.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// Words in which the first launch says which offset is wrong, at most: one a block of it.
inline constexpr int kMostCheckWords = 256;

/// Chunks of elements whose heads are counted, at most: one warp goes over all counts.
inline constexpr int kMostHeadChunks = 4096;

/// Stretches, at most: one may have to merge what all the others left.
inline constexpr int kMostStretches = 1 << 16;

/// Items of a stretch, at most: its places, and those that lanes look at beyond, fit 32 bits.
inline constexpr std::int64_t kMostItems = std::int64_t{1} << 29;

/// Elements of a lane, at most: it loads their flags at once.
inline constexpr int kMostLaneElements = 16;
/// Blocks of one warp that a multiprocessor holds, at most.
inline constexpr int kMostPathBlocks = 32;

/// Elements that a lane takes one behind the other, and those of a row of lanes.
inline int elements_a_lane(const Plan& plan) { return plan.load_width * plan.depth; }
inline int elements_a_row(const Plan& plan) { return kWarpWidth * elements_a_lane(plan); }
/// Items of a tile: elements and ends of segments. Its elements fit into its rows, wherever in a
/// load they begin.
inline std::int64_t tile_items(const Plan& plan) {
  return std::int64_t{elements_a_row(plan)} * plan.rows - (plan.load_width - 1);
}
/// Whether the states of a segment take more registers than one number.
bool has_long_states(const Graph& graph);
/// Whether elements ask how many of their segment come before them, or behind them. As elements are
/// counted, from the other end where scans run backward.
bool asks_before(const Graph& graph);
bool asks_behind(const Graph& graph);
/// Bytes of shared memory of a tile: a state an element, and a state a lane, where heads are. None
/// of a walk.
std::int64_t merge_path_bytes(const Plan& plan);

/// Its row of the table of strategies.
StrategyRow merge_path_strategy();

}  // namespace chainfold::codegen
