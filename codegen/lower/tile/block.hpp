// What the warps of a block do together.
#pragma once

#include <cstdint>

#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

/// Warps' states, equal in all lanes, to the block's state in the lanes of its first warp. Takes
/// the first shared arrays of the program's last launch, one a field of the states, and declares
/// them where there are none yet.
Partials reduce_block(Builder& b, Program& program, TileLowering& tile, Partials partials);

/// The fold, in the first lanes, of the states that the blocks of a cluster have exchanged
/// (Gather). Lane l holds that of block l.
Partials reduce_gathered(Builder& b, TileLowering& tile, Builder::Values states, int blocks);

/// Warps of a block that shares out `items` among its warps. They are a power of two up to `most`,
/// and enough for each to do with `each` of them.
int warps_for(std::int64_t items, std::int64_t each, int most);

}  // namespace chainfold::codegen
