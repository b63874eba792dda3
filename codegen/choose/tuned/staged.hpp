// Tuned values of staged.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedStaged {
  int usual_loads = 128;
  /// Bytes under way a multiprocessor that keep memory busy; more let some multiprocessors run
  /// ahead of others (measured on an H200: 64 KiB 0.97, 128 KiB 0.94 of the ceiling at 64 f16 a
  /// segment).
  std::int64_t bytes_in_flight = 64 * 1024;
  /// Bytes of a tile: shorter ones cost more copies and waits than they save, longer ones do not
  /// fit. Words of several elements that segments straddle take more instructions, which longer
  /// tiles share the others with; so do segments of kLongBytes, whose results leave room (measured
  /// on an H200: 200, 300, 500 and 777 f16 a segment 0.978 of the ceiling, of longer tiles 0.984 to
  /// 0.990).
  std::int64_t short_tile = 1536, short_tile_of_words = 2048, long_tile = 12 * 1024;
  std::int64_t short_tile_of_long = 3 * 1024, long_bytes = 384;
  /// Results of a block that wait to be stored together, in bytes (measured on an H200, 64 and 16
  /// KiB: 32 f16 a segment 0.973 and 0.961 of the ceiling); the most tiles a warp.
  std::int64_t batch_bytes = 64 * 1024;
  /// Where less than kManyShare bytes are read for a byte of results, blocks of one batch each, of
  /// so many bytes that are read, are better than any turns, with more under way (measured on an
  /// H200 in turns and so: 3 f16 a segment 0.976 and 1.003, 5 0.958 and 0.995, 6 0.972 and 0.991, 7
  /// 0.972 and 0.989).
  std::int64_t many_share = 16, bytes_of_batch = 48 * 1024;
  std::int64_t bytes_in_flight_of_batches = 96 * 1024;
  /// Up to so many bytes that are read for a byte of results, blocks that read and write once, as
  /// many of them as fit, are better still: a ring of copies comes to its second turn only when its
  /// results wait (measured on an H200 by the batches above and so: i8 to i32 of 3 a segment 0.85
  /// and 0.93, of 5 0.96 and 0.99, of 6 0.82 and 0.99, i8 to i64 of 3 0.89 and 0.99, of 5 0.96 and
  /// 0.98, f16 to f32 of 3 0.987 both).
  std::int64_t one_round_share = 2;
  int rows_of_one_round = 16, warps_of_one_round = 4;
  int most_blocks_of_one_round = 8, least_blocks_of_one_round = 4;
  /// Bytes that a lane of such a block reads of pairs of words and larger elements: of f32 by 32,
  /// 64 and 128 bytes 1.008, 0.999 and 1.000 of the ceiling, by rows 0.997 (an H200; of f64 1.007
  /// and 0.999, of i32 1.007 and 0.998).
  int pair_bytes = 32;
  /// Bytes of a block that comes late (measured on an H200, without such blocks, by 64 and by 128
  /// KiB: 64 f16 a segment 0.983, 0.992 and 0.991, 32 0.972, 0.980 and 0.980, 500 0.985, 0.991 and
  /// 0.990).
  std::int64_t tail_block_bytes = 96 * 1024;
  int most_batch = 512;
  /// Bytes read for a byte of results below which results are so much of the traffic that to gather
  /// them gains nothing (measured on an H200 for f16, f32, f64 and i8); several folds of one input
  /// gain earlier, because copies leave their warps free, but where rows leave no lane idle and
  /// fold inputs as they are (mean and variance, f16, of 16 a segment 0.98 by rows and 0.96 staged,
  /// of 32 0.97 and 0.95, of 48 0.81 and 0.95; mean and root mean square of 32 0.90 and 0.96).
  std::int64_t least_share = 24, least_share_of_several = 8;
  /// Loads below so many bytes a lane make short work of memory's bandwidth, staged or not at all.
  int wide_bytes = 8;
  /// The longest segments, in bytes, that gain: of those that the widest loads read as well, of
  /// those that half as wide ones read, and of others. Rows of more are in step with memory on
  /// devices of every bandwidth, where blocks that stay for all of them reach 0.98 on an H100 (2^30
  /// f16 on it, staged and by rows: 300 0.975 and 1.006, 500 0.968 and 1.005, 600 0.978 and 1.004,
  /// 1000 0.978 and 1.002, 1500 0.977 and 1.006, dot products of 500 0.958 and 0.991, minima and
  /// maxima of 500 0.965 and 0.986; f64 of 128 0.970 and 0.946, of 200 0.974 and 0.986; on an H200
  /// f16 of 500 0.997 and 1.007, of 512 1.004 and 0.998, of 1000 1.001 and 1.005, i8 of 1000 0.998
  /// and 1.009, f64 of 256 0.997 and 1.011).
  std::int64_t longest_wide = 1024, longest_half = 960, longest_narrow = 6 * 1024;
  /// The same of moments and of folds in order, which take more than memory does (means and
  /// variances of 1000 f16 on an H200 0.994 staged, 0.984 by rows), and of loads of a single
  /// element.
  std::int64_t longest_wide_of_more = 2 * 1024, longest_half_of_more = 8 * 1024;
  /// The same of moments that narrow loads read (means and variances of f16 on an H200, of the
  /// ceiling, by rows with edges and staged: 2003 0.71 and 0.99, 4099 0.86 and 0.99, 7001 0.93 and
  /// 0.98; 8191 0.97 by rows, and no longer room for stages).
  std::int64_t longest_of_moments = 14 * 1024;
  /// The same of sums of f64, which other rows read as well (rows.cpp).
  std::int64_t longest_of_doubles = 3 * 1024;
  /// Merges of a lane in a kernel's text: what more of them cost to compile, no run pays back.
  std::int64_t most_merges = 1024;
  /// Those of an element of moments that a whole warp shares, whose states are merged once a batch.
  std::int64_t steps_of_moments = 4;
};

}  // namespace chainfold::codegen
