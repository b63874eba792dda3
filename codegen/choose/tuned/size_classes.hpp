// Tuned values of size classes.
#pragma once

#include <array>
#include <cstdint>

namespace chainfold::codegen {

/// Warps of a tile of few elements, and rows of a warp's run.
struct FewShape {
  int warps = 1, rows = 1;
};
/// Tiles that wait for no other (propagate, direct), and how many of them a multiprocessor has at
/// most. Blocks of four warps start sooner than those of eight
/// (docs/tuned-values.md#scans-of-few-elements).
struct FewTiles {
  FewShape shape;
  int tiles;
};
/// Blocks that share a long segment of more than so many bytes.
struct LongShare {
  int blocks;
  std::int64_t bytes;
};
/// Warps of a block for up to so many rows of many columns.
struct FewRows {
  std::int64_t rows;
  int warps;
};

struct TunedSizeClasses {
  std::array<FewTiles, 2> few_tiles{{{{.warps = 4, .rows = 4}, 2}, {{.warps = 8, .rows = 8}, 4}}};
  /// The same of elements of 8 bytes, whose rows are short, as long as a multiprocessor has its
  /// tiles all at once (docs/tuned-values.md#scans-of-few-elements).
  std::array<FewTiles, 4> few_wide_tiles{{{{.warps = 4, .rows = 8}, 1},
                                          {{.warps = 8, .rows = 8}, 2},
                                          {{.warps = 8, .rows = 12}, 2},
                                          {{.warps = 4, .rows = 16}, 4}}};
  /// Blocks that share a segment longer than so many bytes while each has a multiprocessor of its
  /// own. Up to `long_segments` a multiprocessor, segments have one block each. Where parts are
  /// sooner, their second launch costs the host what they save (docs/decisions/0013-clusters.md).
  std::array<LongShare, 3> long_shares{{{8, 128 * 1024}, {4, 256 * 1024}, {1, 0}}};
  /// Of so few rows one warp has so many batches that more warps would have none. Many blocks are
  /// there for a short time (docs/tuned-values.md#columns).
  std::array<FewRows, 2> few_rows{{{8, 1}, {32, 2}}};
  /// Elements of a segment above which a CPU's threads have too few tasks, unless there are many
  /// segments.
  std::int64_t cpu_longest_run = std::int64_t{1} << 18;
  /// Bytes that each block of a cluster reads at most: more take longer than a second launch
  /// (docs/tuned-values.md#parts).
  std::int64_t cluster_share_bytes = 80 * 1024;
  /// Bytes up to which parts of the whole input are few: there the second launch's work for more
  /// parts outweighs that they end together.
  std::int64_t few_parts_bytes = 512 * 1024 * 1024;
  /// Bytes up to which blocks have half as many warps, so that twice as many blocks share the
  /// elements.
  std::int64_t small_blocks_bytes = 4 * 1024 * 1024;
  /// Bytes of the longest states of which there may be many: longer ones take long to merge.
  /// `small_sum`: the same of one sum, whose states additions merge (docs/tuned-values.md#parts).
  std::int64_t small_state = 8, small_sum = 16;
  /// Bytes up to which segments that wide loads read are folded by rows, though of more elements
  /// they are staged. Copies, their barriers and the way of results through shared memory delay the
  /// first store (docs/tuned-values.md#which-strategy).
  std::int64_t few_segment_bytes = 128 * 1024 * 1024;
  /// Bytes of the shortest and the longest segments of which few have a block each, or several: one
  /// warp would take too long. `long_segments`: segments a multiprocessor that are few
  /// (docs/tuned-values.md#which-strategy).
  std::int64_t long_segment_bytes = 32 * 1024, longest_segment_bytes = 1024 * 1024;
  std::int64_t long_segments = 2;
  /// Bytes of a matrix that CPUs' caches hold so near that it does not matter where in a row a load
  /// lies. Blocks then read 512 bytes of each row as fast as all of it, and states stay in
  /// registers (docs/tuned-values.md#columns-on-a-cpu).
  std::int64_t few_columns_bytes = 4 * 1024 * 1024;
  /// Bytes up to which folds are so near, in the caches of CPUs that read ahead, that reading ahead
  /// does not pay (docs/tuned-values.md#memory-of-a-cpu).
  std::int64_t near_bytes = 128 * 1024 * 1024;
  /// Bytes of a row, for each multiprocessor, from which on a matrix has many columns.
  std::int64_t many_columns_bytes = 4 * 1024;
  /// Bytes of a CPU's tile where elements are few, so that every thread has some.
  int cpu_small_tile_bytes = 64 * 1024;
  /// A CPU's threads scan long segments one each, and so read each once, on two conditions
  /// (docs/tuned-values.md#scans-on-a-cpu):
  /// - Each thread has `cpu_many_segments`, or there are at most `few_threads`.
  /// - Threads that have none left wait for at most 1 / `idle_share` of the time.
  std::int64_t cpu_many_segments = 4, few_threads = 4, idle_share = 8;
  /// Elements whose running sums a CPU's thread computes while others wake up.
  std::int64_t cpu_alone_elements = 200 * 1024;
};

}  // namespace chainfold::codegen
