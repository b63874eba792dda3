// Tuned values of size classes.
#pragma once

#include <array>
#include <cstdint>

namespace chainfold::codegen {

/// Warps of a tile of few elements, and rows of a warp's run.
struct FewShape {
  int warps = 1, rows = 1;
};
/// Tiles that wait for nobody (propagate, direct), of which a processor has so many at most.
/// Measured on sm_90: blocks of four warps start sooner than those of eight, and up to two of them
/// take as long as one; 16 MB are scanned sooner by small tiles that fill the device, 32 MB by
/// tiles that wait.
struct FewTiles {
  FewShape shape;
  int tiles;
};
/// Blocks that share a long segment of more than so many bytes.
struct LongShare {
  int blocks;
  std::int64_t bytes;
};
/// Warps of a block for less than so many rows of many columns.
struct FewRows {
  std::int64_t rows;
  int warps;
};

struct TunedSizeClasses {
  std::array<FewTiles, 2> few_tiles{{{{.warps = 4, .rows = 4}, 2}, {{.warps = 8, .rows = 8}, 4}}};
  /// The same of elements of 8 bytes, whose rows are short, as long as a processor has its tiles
  /// all at once (us, 2^18, 2^19, 10^6, 1.5 * 10^6 and 1.7 * 10^6 f64 by tiles of four warps with
  /// eight rows 7.9, 9.6 and 14.2, the first three, of eight warps with
  /// eight 8.3, 9.3, 13.1, 16.5, 19.0, with twelve 8.6, 9.8, 13.9, 14.7, 18.9; by tiles that
  /// wait 13.9, 15.3 and 16.7 the last three). Of four warps with sixteen rows since a block's
  /// states are merged in fewer steps: 1.9, 2.1 and 2.15 * 10^6 16.3, 17.2 and 17.5, by tiles that
  /// wait 17.2, 17.7 and 17.9, 1.6 * 10^6 15.9 (with twelve 14.9), 3 * 10^6 23.9 (22.3).
  std::array<FewTiles, 4> few_wide_tiles{{{{.warps = 4, .rows = 8}, 1},
                                          {{.warps = 8, .rows = 8}, 2},
                                          {{.warps = 8, .rows = 12}, 2},
                                          {{.warps = 4, .rows = 16}, 4}}};
  /// Blocks that share a segment longer than so many bytes while they all have a processor of their
  /// own; all of long_segments a processor have one each. Measured on an H200, us by a block each,
  /// by clusters and by as many small parts, which a second launch merges: one f32 segment of 160
  /// KiB 5.8, 5.2, 5.7, of 256 KiB 6.2, 5.3, 5.7, of 512 KiB 8.6, 6.0, 5.7, of 1
  /// MiB 13.0, 7.1, 5.8; 16 of them 6.0, 6.1, 6.3 and 6.7, 6.5, 6.7 and 9.3, 7.7, 7.8
  /// and 14.0, 9.5, 9.9; 33, which four share, of 512 KiB 10.2, 9.3, 9.7, of 1
  /// MiB 15.8, 13.2, 13.4; 64 of them 12.2 and 19.6, by parts 13.3 and 20.6. Where parts are
  /// sooner, their second launch costs the host what they save.
  std::array<LongShare, 3> long_shares{{{8, 128 * 1024}, {4, 256 * 1024}, {1, 0}}};
  /// Of so few rows a warp's batches are so many that more warps would have none, and many blocks
  /// are there for a short time. Measured on an H200, 2^24 elements, of the ceiling by 1, 2, 4 and
  /// 8 warps: 2^20 columns of f32 0.77, 0.78, 0.77, 0.51, 2^21 of f16 0.67, 0.54, 0.40, 0.20; 2^26
  /// elements: 2^20 of f32 0.89 by any, 2^21 of f16 0.83, 0.84, 0.84, 0.59.
  std::array<FewRows, 2> few_rows{{{8, 1}, {32, 2}}};
  /// Longer segments than this give a CPU's threads too few tasks, unless there are many of them.
  std::int64_t cpu_longest_run = std::int64_t{1} << 18;
  /// Bytes that a cluster's blocks read each, at most: more take longer than a second launch.
  std::int64_t cluster_share_bytes = 32 * 1024;
  /// Bytes up to which parts of the whole input are few: what the second launch does for more of
  /// them outweighs that they end together.
  std::int64_t few_parts_bytes = 512 * 1024 * 1024;
  /// Bytes up to which a block's warps are half as many, so that twice as many blocks share them.
  std::int64_t small_blocks_bytes = 4 * 1024 * 1024;
  /// Bytes of the longest states of which there may be many: longer ones take long to merge, but
  /// for a sum's, which additions merge (f64 on an H200, of the ceiling, by 264 parts and by 4096:
  /// of the whole input 0.992 and 0.998, of 2^21 0.990 and 0.997; another H200 took 2 % more time
  /// for what was in 264 parts, and as much for what was in 4096).
  std::int64_t small_state = 8, small_sum = 16;
  /// Bytes up to which segments that wide loads read are folded by rows though more of them are
  /// staged: what copies, their barriers and the way of results through shared memory take before
  /// the first result is stored is 0.4 to 1.3 us (measured on an H200: 64 f16 a segment, of 2^20
  /// elements 4.2 us by rows, 4.8 staged, of 2^22 5.8 and 6.5, of 2^26 35.1 and 36.0; 200 of
  /// 2^22 5.9 and 7.2).
  std::int64_t few_segment_bytes = 128 * 1024 * 1024;
  /// Segments of so many bytes, up to so many for each processor, have a block each, or few: a warp
  /// would have one for too long. Measured on an H200, times of blocks of 16 warps (below
  /// TunedParts::wide_segment_bytes of 8 warps) over those of rows or as many parts as can be: 64
  /// and 256 f16 of 32 KiB 0.60 and 0.74 (rows of more loads 0.76 and 0.81), 170 f32 of 48 KiB
  /// 0.80, 32 and 128 of 64 KiB 0.96 and 0.97, 85 of 96 KiB 0.82, 128 and 256 of 256 KiB 0.87 and
  /// 0.91, of 512 KiB 0.91 and 0.95, 128 of 1 MiB 0.95.
  std::int64_t long_segment_bytes = 32 * 1024, longest_segment_bytes = 1024 * 1024;
  std::int64_t long_segments = 2;
  /// Bytes of a matrix that CPUs' caches hold so near that it does not matter where in a row a load
  /// lies: 512 bytes of each row are then read as fast as all of it, and states stay in registers.
  /// Measured on a Zen 4 (cache of 1 MiB a core): 1 MiB at 1.0 of the rate of plain reading, along
  /// rows 0.8; 4 MiB 0.8 and 0.7; 16 MiB 0.57 and 0.88.
  std::int64_t few_columns_bytes = 4 * 1024 * 1024;
  /// Bytes that CPUs which read ahead have near, as far as that pays. 16 threads of a Sapphire
  /// Rapids by 8 KiB ahead, of the speed without: 4 to 16 MB 0.8 to 1, 32 to 128 MB 0.95 to 1.05,
  /// 256 MB 1.1 to 1.3.
  std::int64_t near_bytes = 128 * 1024 * 1024;
  /// Bytes of a row, for each processor, from which on it has many columns.
  std::int64_t many_columns_bytes = 4 * 1024;
  int cpu_small_tile_bytes = 64 * 1024;
  /// A CPU's threads scan long segments one each, reading each once, if all have so many, or if the
  /// threads are few, and if those that have none left wait for an eighth of the time at most.
  /// Measured in turn, time by segments each over that of threads that share them: 16 threads of a
  /// Sapphire Rapids, f16, 128, 64, 32 and 8 segments 0.93, 0.95, 1.04 and 1.5, f32, 64 and 32
  /// segments 1.01 and 1.12; two threads of one, 2 to 256 segments f16 0.79 to 0.89, bf16 0.84 to
  /// 0.92, f32 0.82 to 0.86.
  std::int64_t cpu_many_segments = 4, few_threads = 4, idle_share = 8;
  /// Elements whose running sums a CPU's thread computes while others wake up.
  std::int64_t cpu_alone_elements = 200 * 1024;
};

}  // namespace chainfold::codegen
