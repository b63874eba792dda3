// Tuned values of staged scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

/// Where a run's rows are (docs/decisions/0046-staged-tiles.md).
struct StagedScanShape {
  int blocks;           ///< a multiprocessor
  int kept;             ///< rows in registers
  int staged;           ///< rows in shared memory, at most: their fold is unrolled
  int round;            ///< staged rows are a multiple
  int window;           ///< ScanPlan::window
  int waves = 0;        ///< of such tiles on the device up to which they serve; 0: any number
  int interleaved = 0;  ///< ScanPlan::interleaved
  int warps = 8;        ///< a block: fewer are more blocks, of which some compute while others wait
  int blocked = 0;  ///< ScanPlan::blocked: rows are odd numbers, which no two lanes' banks share
};
/// Tiles of the whole input: for any number of elements, and smaller ones for few. Small tiles
/// shorten what begins and ends with the first and the last wave.
struct WholeScanShapes {
  StagedScanShape many, few;
};

struct TunedStagedScans {
  WholeScanShapes whole{{2, 16, 24, 1, 1}, {4, 8, 8, 1, 3, 16}};
  /// Sums whose lanes scan by themselves: nearly as fast, with less energy
  /// (docs/decisions/0047-blocked-lanes.md).
  WholeScanShapes whole_blocked{
      {.blocks = 1, .kept = 15, .staged = 27, .round = 1, .window = 1, .warps = 16, .blocked = 1},
      whole.few};
  /// Rows of several inputs take more registers.
  WholeScanShapes whole_several{{4, 8, 28, 1, 3}, {4, 8, 8, 1, 3, 16}};
  /// Elements of four bytes and more have half of the merges a byte, so that half of the warps keep
  /// up. These have twice the registers.
  WholeScanShapes whole_long{{2, 16, 24, 1, 1}, {4, 4, 12, 1, 3, 16}};
  /// States of 64 bits.
  WholeScanShapes whole_wide{{2, 16, 24, 1, 1}, {4, 6, 10, 1, 0, 8}};
  /// States of 64 bits beside rows of several inputs.
  WholeScanShapes whole_wide_several{{3, 8, 28, 1, 1}, {3, 8, 8, 1, 1, 6}};
  /// Rows much shorter than what is stored for them.
  WholeScanShapes whole_short{{3, 4, 60, 1, 3}, {3, 4, 28, 1, 3, 8}};
  /// Tiles of all segments.
  StagedScanShape all_segments{3, 8, 16, 4, 0};
  /// Tiles of all segments, of elements of four bytes and more, where segments take more tiles than
  /// a group has.
  StagedScanShape all_segments_long{2, 16, 24, 4, 1};
  /// Tiles of all segments, with states of 64 bits.
  StagedScanShape all_segments_wide{2, 8, 24, 4, 0};
  /// Tiles of one segment, or tiles that hold whole ones, so that no tile waits.
  StagedScanShape segments{4, 4, 28, 4, 0};
  StagedScanShape segments_wide{2, 16, 24, 4, 1};
  /// Several folds: what is made of rows leaves no registers in which rows could stay.
  StagedScanShape several{4, 0, 16, 4, 0};
  /// Quick folds, whose states tiles take long to merge and to look for
  /// (docs/tuned-values.md#look-back-tiles-in-shared-memory).
  StagedScanShape quick{2, 0, 24, 4, 1}, quick_segments{2, 0, 24, 1, 0};
  /// Minima and maxima, whose steps compilers take long for: half of the rows, in twice the blocks
  /// (docs/tuned-values.md#look-back-tiles-in-shared-memory).
  StagedScanShape extremes{4, 4, 12, 4, 0};
  StagedScanShape whole_extremes{4, 4, 12, 1, 3};
  /// Places of minima and maxima, of which rows keep neither values nor indices
  /// (docs/tuned-values.md#look-back-tiles-in-shared-memory).
  StagedScanShape places{2, 8, 24, 4, 1};
  /// Elements of eight bytes in tiles of all segments.
  StagedScanShape wide_places{2, 0, 24, 4, 1};
  /// Moments: elements that are states of several f64 each want all the registers that there are.
  StagedScanShape moments{1, 0, 16, 4, 0};
  /// Tiles of a segment above which tickets are interleaved: most tiles of a multiprocessor would
  /// be of one segment, and wait for each other. `interleaved`: segments whose tickets are
  /// interleaved, the same for launches of any number of segments. Of as many or more, a
  /// multiprocessor's tiles are of several; far more lie too far apart in memory
  /// (docs/decisions/0045-interleaved-tickets.md).
  std::int64_t tiles_in_turn = 40;
  int interleaved = 16;
  /// Bytes of an element that is long.
  int long_element = 4;
  /// Warps of a multiprocessor with registers enough for rows to stay.
  int many_warps = 32;
  /// Rows for whose exchanges there are registers.
  int rows_under_way = 4;
  /// Bytes of shared memory of a block besides its rows.
  int besides = 2 * 1024;
};

}  // namespace chainfold::codegen
