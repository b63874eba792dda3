// Tuned values of columns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedColumns {
  /// Bytes of a row among which one sector more than a warp asks for is not noticed. Loads side by
  /// side meet in the first-level cache, neighbouring blocks only in the second, which is not much
  /// faster than memory.
  int window_bytes = 512;
  /// Parts of the rows: the share of its waves of blocks that a launch fills, and parts up to which
  /// more are tried for that.
  double full_waves = 0.9;
  std::int64_t more_parts = 16;
  /// Warps of a block of folds that take few instructions an element, and of such as are many.
  std::int64_t block_warps = 8, many_warps = 4;
  /// The same, in shares of the warps that fill the device: as many more as one fold by narrow
  /// bands leaves registers for, as many as count as full, what smaller blocks have to gain, what
  /// is poor where blocks come in turns, and from where on they do (take_blocks, columns.cpp).
  double room_of_light = 1.5, full_share = 0.95, gain = 0.05, poor_share = 0.8, many_waves = 2.5;
  /// States that a lane carries, in bytes: half of a thread's registers hold twice as many.
  std::int64_t most_state_bytes = 192;
  /// Loads of a lane that keep a GPU's memory busy; twice as many where they are narrow.
  int loads = 8, narrow_bytes = 4;
  /// The same where windows are phased, which bring a load more besides; and what a lane of them
  /// has in flight, and the states of lanes that leave registers for two blocks.
  int phased_window_bytes = 1024, phased_bytes = 128, few_state_bytes = 128;
  /// Warps of a processor that these states leave registers for.
  int few_block_warps = 16;
  /// Moments of a batch of rows are taken at once: elements that a lane has of one, its loads of
  /// those at most, and their bytes at least; without phases as many elements of a byte, twice as
  /// many of two (measured on an H200: 4096 f16 columns 0.97 of the ceiling, with half the rows of
  /// twice the columns 0.83). In phases, whose windows bring a load more besides, they are as wide
  /// as sums' (8191 columns 0.94, with half the bytes 0.72).
  int moment_elements = 64, moment_loads = 16, moment_bytes = 8;
  /// A CPU's parts do not depend on its threads, so that neither do its results.
  int cpu_blocks = 256;
  int cpu_depth = 8;
  /// Loads side by side by a CPU's thread: one for so many bytes of registers (two by AVX-512, one
  /// by AVX2), and more where states stay at their columns. Two threads of a Zen 3, by two and by
  /// one, GB/s: 100 columns of f32 6 and 16, 300 9 and 16, 1000 14 and 17, f16 of 300 12 and 16.
  int run_bytes = 1024, fixed_run_bytes = 512;
  /// Rows of a batch that is a smaller one (cpu_depth); states in the first-level cache, and rows
  /// that are not short.
  int cpu_few_depth = 4;
  std::int64_t near_state_bytes = 16 * 1024, near_row_bytes = 512;
  /// States that a CPU's second-level cache holds beside the rows that pass by.
  std::int64_t strip_bytes = 128 * 1024;
  /// Rows a multiple of this apart have all their lines in the same set of a second-level cache;
  /// and bytes of elements whose states are not most of what is moved.
  std::int64_t same_set_bytes = 128 * 1024;
  int same_set_element = 4;
};

}  // namespace chainfold::codegen
