// Tuned values of columns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

struct TunedColumns {
  /// Bytes of a row that a warp reads at once where rows begin within a sector. One sector more is
  /// not noticed among so many (docs/tuned-values.md#columns). Loads side by side meet in the
  /// first-level cache, neighbouring blocks only in the second-level one, which is not much faster
  /// than memory.
  int window_bytes = 512;
  /// Share of its waves that a launch's blocks have to fill, and parts of the rows up to which more
  /// are tried for that.
  double full_waves = 0.9;
  std::int64_t more_parts = 16;
  /// Warps of a block of folds that take few instructions an element; of blocks that are so many
  /// that they take their turns.
  std::int64_t block_warps = 8, many_warps = 4;
  /// What take_blocks() (columns.cpp) compares, in shares of the warps that fill the device
  /// (docs/tuned-values.md#columns):
  /// - `room_of_light`: up to which one fold by narrow bands leaves registers,
  /// - `full_share`: from which the device counts as full,
  /// - `gain`: that smaller blocks have to gain,
  /// - `poor_share`: below which no blocks are chosen where many would take their turns,
  /// - `many_waves`: above which blocks are that many.
  double room_of_light = 1.5, full_share = 0.95, gain = 0.05, poor_share = 0.8, many_waves = 2.5;
  /// Bytes of the states that a lane carries at most: half of a thread's registers hold twice as
  /// many.
  std::int64_t most_state_bytes = 192;
  /// Loads of a lane that keep a GPU's memory busy; twice as many where a load has at most
  /// `narrow_bytes` bytes.
  int loads = 8, narrow_bytes = 4;
  /// In phases, whose windows bring a load more besides: bytes of a row that a warp reads, and
  /// bytes of a lane under way. `few_state_bytes`: bytes of a lane's states that leave registers
  /// for two blocks.
  int phased_window_bytes = 1024, phased_bytes = 128, few_state_bytes = 128;
  /// Warps a multiprocessor that such states leave registers for.
  int few_block_warps = 16;
  /// A lane takes the moments of a batch of rows at once. The values: elements of a batch, its
  /// loads at most, and bytes of a load at least. Without phases a batch has so many elements times
  /// the bytes of an element. In phases, whose windows bring a load more besides, loads are as wide
  /// as those of sums (docs/tuned-values.md#columns).
  int moment_elements = 64, moment_loads = 16, moment_bytes = 8;
  /// A CPU's parts do not depend on its threads, so that neither do its results.
  int cpu_blocks = 256;
  /// Rows of a CPU's batch; where fewer do better there are `cpu_few_depth`.
  int cpu_depth = 8;
  /// Bytes of registers for which a CPU's thread takes one load side by side: two by AVX-512, one
  /// by AVX2. `fixed_run_bytes`: the same where states stay at their columns, which takes more
  /// loads (docs/tuned-values.md#columns-on-a-cpu).
  int run_bytes = 1024, fixed_run_bytes = 512;
  /// Rows of a smaller batch (cpu_depth() in columns.cpp). `near_state_bytes`: bytes of states in
  /// the first-level cache. `near_row_bytes`: bytes of rows that are not short.
  int cpu_few_depth = 4;
  std::int64_t near_state_bytes = 16 * 1024, near_row_bytes = 512;
  /// Bytes of states that a CPU's second-level cache holds beside the rows that pass by.
  std::int64_t strip_bytes = 128 * 1024;
  /// Bytes apart by a multiple of which rows have all their lines in the same set of a second-level
  /// cache. `same_set_element`: bytes of elements whose states are not most of what is moved.
  std::int64_t same_set_bytes = 128 * 1024;
  int same_set_element = 4;
};

}  // namespace chainfold::codegen
