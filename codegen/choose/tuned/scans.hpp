// Tuned values of scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedScans {
  /// Rows of a run, of a tile that few registers hold, and of a group's at most.
  int run_rows = 8, tile_rows = 4, most_group_rows = 12;
  /// Rows of a CPU's tiles of scans in both directions, which are sooner than a pass over memory
  /// for each where segments fit (ns an element of a Zen 4's caches, f32 of 33, 96, 480 and 1008:
  /// 0.43, 0.40, 0.62 and 0.70, by propagate 4.2, 1.65, 0.80 and 0.65).
  int cpu_rows_both_ways = 16;
  /// Bytes of a lane's registers for rows of a warp's tile whose segments quick folds scan.
  /// Measured on an H200, of a copy, recurrences of f32 of 1000 and 4096: by tiles 0.75 and 0.95,
  /// by blocks 0.36 and 0.35; of 8192 by blocks 0.47, by a tile in shared memory (look_back) 0.61.
  int quick_row_bytes = 512;
  /// Registers of a lane that hold addresses, in the guess of what rows take; and up to which a
  /// processor has 32 and 16 warps.
  int address_registers = 20, registers_of_32_warps = 64, registers_of_16_warps = 104;
  /// Words of a lane's registers in which values wait for the pass in the other direction, at most
  /// (f32 of 32768 is 64 words). Measured on an H200, of a copy, by one block and by tiles that are
  /// read twice: f32 of 32768 0.95 and 0.62, of 65536 (128) 0.43 and 0.62; f16, of which a load has
  /// twice as many, 0.71 and 0.55, 0.28 and 0.55.
  int waiting_words = 64;
  /// Groups of 32 tiles that a CPU's threads take in so many rounds are looked at one by one, at
  /// most so many groups, as each is code of its own (of 12 a sum takes twice as long to compile).
  int cpu_window_rounds = 2, cpu_most_window = 8;
  /// Words of a lane's registers in which running values wait for their segment's fold, at most.
  /// Measured on an H200, of a copy, blocks all full of segments, running sums less the segment's,
  /// f16 by four rows (32 words, 57 registers) 0.91, by eight 0.75, f32 by eight (32 words) 1.00.
  /// By three launches, of 65536 f16, 0.64 and 0.61.
  int broadcast_words = 32;
  /// Warps of a processor in scans of both directions of more words than these a lane. Sums, f16 of
  /// four rows (32 words) by 24 warps 0.74 to 0.76 of a copy, by 16 0.57 to 0.69.
  int few_words_both_ways = 16, warps_both_ways = 24;
  /// Elements of a CPU's segments up to which tiles of whole rows serve: of any plain folds; and of
  /// outputs below 4 bytes, of so many rows at most; and rows times folds.
  /// Measured on a Zen 4, two threads, of a copy, without and with: f32 of 5 (5 rows) 0.69 and
  /// 0.98, of 31 0.73 and 0.97, of 33 0.77 and 1.06, of 48 (3 rows) 0.76 and 1; f16 of 5 0.72 and
  /// 0.92, of 31 0.53 and 0.5, of 33 0.46 and 0.67, of 40 (5) 0.55 and 0.82, of 68 (17) 0.6 and
  /// 0.81, of 100 (25) 0.65 and 0.68, of 63 (63 rows) 0.68 and 0.64, of 70 (35) 0.42 and 0.49.
  std::int64_t longest_whole_tile = 64, longest_whole_tile_of_halves = 128;
  std::int64_t rows_of_halves = 32, rows_of_whole_tile = 64;
  /// Elements of a segment that is no multiple of a load up to which a warp scans it by itself
  /// where there are quick folds, whose tiles have no heads. Measured on an H200, of a copy,
  /// recurrences of f32 of 5001: by scan_run 0.38, by propagate 0.26, by look_back 0.10; of 100001
  /// by propagate 0.44, by look_back 0.16.
  std::int64_t longest_quick_run = 16 * 1024;
  /// Blocks of scan_tile: rows of all warps, and warps at most. Rows of fewer
  /// bytes are as many as have them.
  int short_rows = 8, short_warps = 4, least_row_bytes = 256;
  int many_resident_warps = 64;
  /// propagate where segments begin within loads, whose first and last tiles have code of their
  /// own: rows, and warps a block. Measured on an H200, of a copy, running sums less the segment's
  /// by four warps and by eight: f16 of 7001 0.53 and 0.49, of 9001 0.54 and 0.43, of 100001 0.61
  /// and 0.58; f32 0.59 and 0.53, 0.59 and 0.52, 0.67 and 0.59.
  int rows_within_loads = 4, warps_within_loads = 4;
  /// Larger blocks have too few registers for rows of this length.
  int most_block_warps = 16;
  /// Bytes of a lane's registers that the rows of a run may take.
  int run_bytes = 128;
  /// look_ahead: tiles in shared memory or on their way, blocks a processor, and bytes of tiles,
  /// half of which are under way (0009).
  int stages = 4, stage_blocks = 2;
  std::int64_t stage_bytes = 128 * 1024;
  /// look_ahead: bytes of a CPU's tile, of all inputs, three of which are in a core's own cache.
  /// Sixteen threads of a Sapphire Rapids scan f16 by tiles of 64 to 256 KiB at 1.03 of a copy's
  /// speed.
  int cpu_ahead_tile_bytes = 128 * 1024;
  /// Steps of a merge, constants among them, with which rows are scanned one at a time, each of
  /// which has some eleven merges of its own: recurrences of f64 have 132, of f32, which are quick
  /// where rows are many, 84. Of the whole input NVRTC compiles four rows of those and the staged
  /// ones in 6.4 s, one row in 0.7 s, for sm_90; others spill.
  std::size_t long_merge = 100;
  /// Blocks that own segments, of so many warps, have too few of their loads on the way: a
  /// processor has few of them, and each waits for its slowest warp. Those that own several
  /// segments have the work of heads besides.
  int slow_warps = 16, slow_warps_of_several = 8;
};

}  // namespace chainfold::codegen
