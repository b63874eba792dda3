// Tuned values of rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedRows {
  /// Registers are not worth to be made of more pieces than this.
  int most_pieces = 4;
  /// What operations take beside an element-wise one: to put another piece into a register, and to
  /// merge two lanes of two rows, or, of moments, their states. Of a Zen 4, from cache: f16 of 24,
  /// 37 and 48 by 8 lanes 41, 40 and 46 GB/s, by 16 33, 38 and 48, by 32 28, 27 and 35.
  double piece = 0.3, merge = 1, merge_moments = 4;
  /// Rows of folds in order are merged by themselves, in about as many steps as lanes have levels.
  int merges_in_order = 4;
  /// Loads of a segment that are held at once, because moments then need no merges.
  int most_loads_of_moments = 16;
  /// Of more loads of a warp moments of 4 and 8 bytes are merged by the more constant weights the
  /// more lanes there are (variances of 100 and 128 f32: 37 and 40 GB/s by 16 lanes, 43 and 54 by
  /// 32). Those of 2 bytes are converted, which takes most.
  std::int64_t most_warp_loads_of_moments = 2;
  /// Bytes over which the segments side by side reach of which a load takes something, from which
  /// on prefetchers follow no more (two segments a load from memory: f16 of 220 1.03 of what a loop
  /// that only reads gets, of 224 0.9, of 240 and 250 0.6; by 32 lanes 1.09 to 1.16).
  std::int64_t far_bytes = 880;
  /// Warps of a block whose segments have edges, and loads in flight of a lane at most; more of one
  /// fold's elements of two and four bytes, which are added one by one: of two bytes tensor cores
  /// save nothing here. Sums, minima and maxima on an H200, of the ceiling, with edges loaded
  /// first: f16 of 3333, 4500 and 10007 by eight loads on tensor cores 0.956, 0.923 and 0.999,
  /// without 1.006, 1.001 and 0.998, by sixteen 1.007, 1.000 and 1.004; maxima of 5001 by eight
  /// 0.995, by sixteen 1.004; f32 of 5003 0.996 and 1.004, of 10007 0.984 and 0.992; minima with
  /// maxima of 5001 by eight warps of four loads 1.067, by four of eight 1.086; products of two
  /// inputs, of 7001 0.988 and 0.996; filtered sums of 5001 by eight loads 1.07, by sixteen less
  /// than 1.05.
  int edge_warps = 4, edge_loads = 8, edge_loads_of_one = 16;
  /// Segments of one fold that wide loads read, from so many bytes on: few are folded as soon as
  /// their loads are there, which are all under way at once then, and lanes that add have fewer
  /// steps behind the last than tensor cores (on an H200, times of what eight warps of sixteen
  /// loads on tensor cores take, 2 MiB, 32 MiB and 2 GiB: f16 of 8 KiB 0.90, 0.96 and 0.998, 32 KiB
  /// 0.76, 0.93 and 0.999, f32 of 8 KiB 0.99, 1.01 and 1.001, 32 KiB 0.84, 0.99 and 0.998, f64 of 8
  /// KiB 0.90, 0.91 and 1.001, 32 KiB 0.65, 0.91 and 0.996).
  std::int64_t deep_from = 4 * 1024;
  int deep_loads = 32, deep_warps = 4;
  /// Sums of f64 that begin anywhere. Of fewer than kLongDoubles elements they are loads of one
  /// each, by two warps on tensor cores; longer ones are added by lanes, many loads ahead, by pairs
  /// from kPairsOfDoubles on. On an H200, of the ceiling, staged or by four warps' single loads on
  /// tensor cores, and so: of 401 0.989 and 1.001, 515 0.993 and 1.003, 777 0.989 and 0.999, 1001
  /// 0.995 and 1.002, 1111 0.983 and 0.999, 1555 0.991 and 1.000, 3001 1.002 and 1.007, 4099 1.003
  /// and 1.010, 5003 0.991 and 1.006, 6661 0.991 and 1.007, 8191 0.984 and 1.004.
  std::int64_t few_single_loads = 576, long_doubles = 1024, pairs_of_doubles = 1536;
  int short_single_loads = 8, long_single_loads = 32, warps_of_single_loads = 2;
  /// How many times the loads of a segment, with the empty ones of its last batch, may be those by
  /// batches of half as many: of sums of bytes, and of moments, whose every load takes long (bytes
  /// of 5001, 16 and 12 loads, by eight 0.84 of the ceiling, by four 0.98, of 10001, 24 and
  /// 20, 1.073 and 1.065; means and variances of 5001 f16, 24 and 20, 0.92 and 1.03, of 15001, 64
  /// and 60, 0.943 and 0.957, of 30011, 120 and 120, 0.979 and 0.960).
  double most_empty = 1.25, most_empty_of_moments = 1.05;
};

}  // namespace chainfold::codegen
