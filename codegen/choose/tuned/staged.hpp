// Tuned values of staged.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedStaged {
  /// Loads of a lane's segment at most; moments that a warp shares have up to kMostStagedLoads.
  int usual_loads = 128;
  /// Bytes under way a multiprocessor that keep memory busy; more let some multiprocessors run
  /// ahead of others (docs/tuned-values.md#staged).
  std::int64_t bytes_in_flight = 64 * 1024;
  /// Bytes of a tile: shorter ones cost more copies and waits than they save, longer ones do not
  /// fit (docs/tuned-values.md#staged). Words of several elements that segments straddle take more
  /// instructions, and a longer tile shares the others among more segments. Segments of
  /// `long_bytes` have longer tiles for that, too, since their results leave room.
  std::int64_t short_tile = 1536, short_tile_of_words = 2048, long_tile = 12 * 1024;
  std::int64_t short_tile_of_long = 3 * 1024, long_bytes = 384;
  /// Rows of a tile at most; the same where results are bytes (docs/tuned-values.md#staged).
  int rows = 8, rows_of_bytes = 16;
  /// Bytes of a block's results that wait to be stored together (docs/tuned-values.md#staged).
  std::int64_t batch_bytes = 64 * 1024;
  /// Bytes read for a byte of results below which each block takes one store batch: blocks that
  /// take batches in turn are slower. `bytes_of_batch`: bytes that such a block reads.
  /// `bytes_in_flight_of_batches`: bytes under way a multiprocessor, which are more
  /// (docs/tuned-values.md#staged).
  std::int64_t many_share = 16, bytes_of_batch = 48 * 1024;
  std::int64_t bytes_in_flight_of_batches = 96 * 1024;
  /// Bytes read for a byte of results up to which blocks read and write once, as many of them as
  /// fit. A ring of copies comes to its second trip only when its results wait
  /// (docs/tuned-values.md#staged).
  std::int64_t one_round_share = 2;
  /// Segments of a lane and tile, and warps, of such blocks; then such blocks a multiprocessor.
  int rows_of_one_round = 16, warps_of_one_round = 4;
  int most_blocks_of_one_round = 8, least_blocks_of_one_round = 4;
  /// Bytes that a lane of such a block reads of pairs of words and larger elements
  /// (docs/tuned-values.md#staged).
  int pair_bytes = 32;
  /// Bytes of a tail block (docs/tuned-values.md#staged).
  std::int64_t tail_block_bytes = 96 * 1024;
  /// Tiles of a warp in a store batch at most.
  int most_batch = 512;
  /// Bytes read for a byte of results below which results are so much of the traffic that gathering
  /// them gains nothing. Several folds of one input gain earlier, because copies leave their warps
  /// free. They do not where rows leave no lane idle and fold inputs as they are
  /// (docs/tuned-values.md#which-strategy).
  std::int64_t least_share = 24, least_share_of_several = 8;
  /// Bytes of a lane's load below which segments are staged whatever they read for a byte of
  /// results (docs/tuned-values.md#which-strategy).
  int wide_bytes = 8;
  /// Bytes of the longest segments that gain: those that the widest loads read as well, those that
  /// half as wide ones read, and others. Rows of longer segments are in step with memory on devices
  /// of every bandwidth; persistent loops fall behind on some
  /// (docs/tuned-values.md#which-strategy).
  std::int64_t longest_wide = 1024, longest_half = 960, longest_narrow = 6 * 1024;
  /// The same of moments and of folds in order, which take more than memory does, and of loads of a
  /// single element (docs/tuned-values.md#which-strategy).
  std::int64_t longest_wide_of_more = 2 * 1024, longest_half_of_more = 8 * 1024;
  /// The same of moments that narrow loads read; longer segments leave no room for stages
  /// (docs/tuned-values.md#which-strategy).
  std::int64_t longest_of_moments = 14 * 1024;
  /// The same of sums of f64, which other rows read as well (choose/rows.cpp).
  std::int64_t longest_of_doubles = 3 * 1024;
  /// Merges of a lane in a kernel's text at most: what more of them cost to compile, no run pays
  /// back.
  std::int64_t most_merges = 1024;
  /// Merges of an element of moments that a whole warp shares, whose states are merged once a
  /// batch.
  std::int64_t steps_of_moments = 4;
  /// Steps of an element whose place is found, and of one of a sum relative to the largest one.
  std::int64_t steps_of_places = 4, steps_of_terms = 6;
};

}  // namespace chainfold::codegen
