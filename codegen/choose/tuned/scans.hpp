// Tuned values of scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedScans {
  /// Rows of a run, of a tile that few registers hold, and, at most, of a block of several
  /// segments.
  int run_rows = 8, tile_rows = 4, most_group_rows = 12;
  /// Rows of a CPU's tiles of scans in both directions. Where segments fit, tiles are sooner than a
  /// pass over memory for each direction (docs/tuned-values.md#values-that-wait).
  int cpu_rows_both_ways = 16;
  /// Bytes of a lane's registers for rows of a warp's tile whose segments quick folds scan
  /// (docs/tuned-values.md#quick-folds).
  int quick_row_bytes = 512;
  /// Registers of a lane that hold addresses, in the guess of what rows take. The others: registers
  /// of a lane up to which a multiprocessor has 32 and 16 warps.
  int address_registers = 20, registers_of_32_warps = 64, registers_of_16_warps = 104;
  /// Rows of a warp's tile where places are scanned of elements of `place_bytes` bytes at most:
  /// rows keep neither values nor indices.
  int place_rows = 16, place_bytes = 8;
  /// Words of a lane's registers, at most, in which values wait for the pass in the other direction
  /// (docs/tuned-values.md#values-that-wait).
  int waiting_words = 64;
  /// A CPU's look-back window: groups of 32 tiles that its threads take in so many trips, and so
  /// many groups at most. Each group is code of its own (docs/tuned-values.md#look-ahead).
  int cpu_window_rounds = 2, cpu_most_window = 8;
  /// Words of a lane's registers, at most, in which running values wait for their segment's fold
  /// (docs/tuned-values.md#values-that-wait).
  int broadcast_words = 32;
  /// Words of a lane above which scans in both directions have at most `warps_both_ways` warps a
  /// multiprocessor (docs/tuned-values.md#values-that-wait).
  int few_words_both_ways = 16, warps_both_ways = 24;
  /// Elements of a CPU's segments below which tiles of whole rows serve plain folds.
  /// `longest_whole_tile_of_halves`: of outputs below 4 bytes, by tiles of at most `rows_of_halves`
  /// rows. `rows_of_whole_tile`: rows times folds at most (docs/tuned-values.md#scans-on-a-cpu).
  std::int64_t longest_whole_tile = 64, longest_whole_tile_of_halves = 128;
  std::int64_t rows_of_halves = 32, rows_of_whole_tile = 64;
  /// Elements up to which a warp scans a segment by itself, where folds are quick and the segment
  /// is no multiple of a load. Tiles of quick folds have no heads
  /// (docs/tuned-values.md#quick-folds).
  std::int64_t longest_quick_run = 16 * 1024;
  /// Blocks of scan_tile: rows of all warps, and warps at most. Rows of fewer than
  /// `least_row_bytes` are as many as have so many bytes together.
  int short_rows = 8, short_warps = 4, least_row_bytes = 256;
  /// Warps of a multiprocessor below which blocks have `short_warps`, as it holds fewer blocks,
  /// too.
  int many_resident_warps = 64;
  /// Rows, and warps of a block, of propagate where segments begin within loads
  /// (docs/tuned-values.md#propagate). Their first and last tiles have code of their own.
  int rows_within_loads = 4, warps_within_loads = 4;
  /// Warps of a block at most: larger ones have too few registers for rows of this length.
  int most_block_warps = 16;
  /// Bytes of a lane's registers that the rows of a run may take.
  int run_bytes = 128;
  /// Of look_ahead: tiles in shared memory or on their way, blocks a multiprocessor (occupancy),
  /// and bytes of tiles. Half of these are under way (docs/decisions/0009-staged-segments.md).
  int stages = 4, stage_blocks = 2;
  std::int64_t stage_bytes = 128 * 1024;
  /// Bytes of a CPU's tile of look_ahead, of all inputs; three such tiles are in a core's own cache
  /// (docs/tuned-values.md#look-ahead).
  int cpu_ahead_tile_bytes = 128 * 1024;
  /// Steps of a merge, constants among them, with which rows are scanned one at a time: each row
  /// has some eleven merges of its own. More rows take long to compile, or spill
  /// (docs/tuned-values.md#quick-folds).
  std::size_t long_merge = 100;
  /// Warps with which blocks that own segments have too few of their loads on the way. A
  /// multiprocessor has few such blocks, and each waits for its slowest warp. Blocks that own
  /// several segments have the work of heads besides.
  int slow_warps = 16, slow_warps_of_several = 8;
};

}  // namespace chainfold::codegen
