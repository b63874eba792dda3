// Tuned values of head tiles.
#pragma once

namespace chainfold::codegen {

struct TunedHeadTiles {
  /// Elements that a lane takes, at most.
  int elements_a_lane = 16;
  /// Bytes of a tile in shared memory up to which enough blocks are at work at once.
  int tile_bytes = 12 * 1024;
  /// Blocks of one warp that a multiprocessor is to hold, and fewer of long states; and stretches:
  /// so many waves of those.
  int blocks = 20, few_blocks = 16, waves = 1;
  /// Warps of a block that merges what stretches left.
  int warps = 2;
};

}  // namespace chainfold::codegen
