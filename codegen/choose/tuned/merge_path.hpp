// Tuned values of merge paths.
#pragma once

namespace chainfold::codegen {

struct TunedMergePath {
  /// Elements that a GPU's lane takes, and rows of a tile, at most.
  int elements_a_lane = 16, rows = 1;
  /// Bytes of a tile in shared memory up to which enough blocks of a GPU are at work at once, of
  /// folds and of scans.
  int tile_bytes = 12 * 1024, scan_tile_bytes = 7 * 1024;
  /// Rows of a tile of a CPU, each a vector, and stretches.
  int cpu_rows = 32, cpu_stretches = 256;
  /// Elements of a segment from which a CPU folds it by all lanes, and not one by one.
  int cpu_apart = 12;
  /// Bytes of it, which stay in a core's first-level cache.
  int cpu_tile_bytes = 24 * 1024;
  /// Blocks of one warp that a multiprocessor is to hold, and fewer of scans and of long states,
  /// whose lanes take more registers; and stretches: so many waves of those.
  int blocks = 24, few_blocks = 16, waves = 4;
  /// Warps of a block that merges what stretches left.
  int warps = 2;
};

}  // namespace chainfold::codegen
