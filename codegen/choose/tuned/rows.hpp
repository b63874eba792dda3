// Tuned values of rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedRows {
  /// Pieces of which a register is made at most: one of more is not worth it.
  int most_pieces = 4;
  /// Costs in units of an element-wise operation (docs/tuned-values.md#rows). `piece`: to put
  /// another piece into a register. `merge`: to merge two lanes of two rows. `merge_moments`: the
  /// same of states of moments.
  double piece = 0.3, merge = 1, merge_moments = 4;
  /// Rows of folds in order are merged by themselves, in about as many steps as lanes have levels.
  int merges_in_order = 4;
  /// Loads of a segment that are held at once, because moments then need no merges.
  int most_loads_of_moments = 16;
  /// Loads of a warp above which moments of 4 and 8 bytes keep all lanes: the more lanes, the more
  /// weights of merges are constants. Those of 2 bytes are converted, which takes most
  /// (docs/tuned-values.md#moments).
  std::int64_t most_warp_loads_of_moments = 2;
  /// Bytes over which the segments side by side of one load reach, from which on prefetchers follow
  /// no more (docs/tuned-values.md#rows).
  std::int64_t far_bytes = 880;
  /// Warps of a block whose segments have edges, and loads in flight of a lane at most.
  /// `edge_loads_of_one`: the same of one fold's elements of two and four bytes, which lanes add
  /// one by one. Tensor cores save nothing here for elements of two bytes
  /// (docs/tuned-values.md#long-rows-of-a-warp).
  int edge_warps = 4, edge_loads = 8, edge_loads_of_one = 16;
  /// Bytes of a segment of one fold from which on wide loads have it all under way at once.
  /// `deep_loads`, `deep_warps`: loads of a lane, and warps of a block, there. Few segments are
  /// folded as soon as their loads are there (docs/decisions/0026-long-rows.md). Lanes that add
  /// have fewer steps behind the last load than tensor cores.
  std::int64_t deep_from = 4 * 1024;
  int deep_loads = 32, deep_warps = 4;
  /// Sums of f64 that begin anywhere (docs/tuned-values.md#long-rows-of-a-warp):
  /// - Segments of fewer than `long_doubles` elements take single loads and tensor cores, in blocks
  ///   of `warps_of_single_loads`.
  /// - Longer ones are added by lanes, many loads ahead, and from `pairs_of_doubles` on by pairs.
  /// - A lane has `short_single_loads` in flight below `few_single_loads` elements, else
  ///   `long_single_loads`.
  std::int64_t few_single_loads = 576, long_doubles = 1024, pairs_of_doubles = 1536;
  int short_single_loads = 8, long_single_loads = 32, warps_of_single_loads = 2;
  /// Loads in flight of a lane that folds booleans: of more, they do not fit into the predicates.
  int loads_of_tests = 4;
  /// The same of sums of terms of f64 (docs/tuned-values.md#rows).
  int loads_of_terms = 4;
  /// Rows whose states of several fields are merged with each other before lanes merge theirs, at
  /// most, and bytes that a lane loads of them (docs/tuned-values.md#rows).
  int rows_of_long_merges = 8, row_bytes_of_long_merges = 256;
  /// Largest ratio of a segment's loads to those by batches of half as many, both with the empty
  /// loads of the last batch. `most_empty`: of one fold of bytes. `most_empty_of_moments`: of
  /// moments, whose every load takes long (docs/tuned-values.md#long-rows-of-a-warp).
  double most_empty = 1.25, most_empty_of_moments = 1.05;
};

}  // namespace chainfold::codegen
