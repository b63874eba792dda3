// States that lie in memory one behind the other, merged by a block.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

/// States that a lane has in flight at once, and those of this graph's folds: half as many if they
/// have many fields. One trip of loads takes longer than all the merging.
inline constexpr int kStatesInFlight = 4;
int states_in_flight(const Graph& graph);

/// The merge of the states [first, first + count), both uniform i64, in their order, by all warps
/// of the block. Its first warp has it, or all have where the block is one. `start` is what each
/// lane begins with: identities.
Partials merge_states(Builder& b, Program& program, TileLowering& tile, const StateArrays& states,
                      ValueId first, ValueId count, const Partials& start);

}  // namespace chainfold::codegen
