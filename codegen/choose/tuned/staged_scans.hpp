// Tuned values of staged scans.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainfold::codegen {

/// Where a run's rows are, found by measuring on sm_90 (docs/decisions/0046-staged-tiles.md).
struct StagedScanShape {
  int blocks;           ///< a processor
  int kept;             ///< rows in registers
  int staged;           ///< rows in shared memory, at most: their fold is unrolled
  int round;            ///< staged rows are a multiple
  int window;           ///< ScanPlan::window
  int waves = 0;        ///< of such tiles on the device up to which they serve; 0: any number
  int interleaved = 0;  ///< ScanPlan::interleaved
  int warps = 8;        ///< a block: fewer are more blocks, of which some compute while others wait
  int blocked = 0;  ///< ScanPlan::blocked: rows are odd numbers, which no two lanes' banks share
};
/// Of the whole input: tiles for any number of elements, and smaller ones, so that what begins and
/// ends with the first and the last wave of them is less.
struct WholeScanShapes {
  StagedScanShape many, few;
};

struct TunedStagedScans {
  WholeScanShapes whole{{2, 16, 24, 1, 1}, {4, 8, 8, 1, 3, 16}};
  /// Sums whose lanes scan by themselves: nearly as fast, with a tenth less energy.
  WholeScanShapes whole_blocked{
      {.blocks = 1, .kept = 15, .staged = 27, .round = 1, .window = 1, .warps = 16, .blocked = 1},
      whole.few};
  /// Rows of several inputs take more registers.
  WholeScanShapes whole_several{{4, 8, 28, 1, 3}, {4, 8, 8, 1, 3, 16}};
  /// Elements of four bytes and more have half of the merges a byte, so that half of the warps keep
  /// up: these have twice the registers.
  WholeScanShapes whole_long{{2, 16, 24, 1, 1}, {4, 4, 12, 1, 3, 16}};
  WholeScanShapes whole_wide{{2, 16, 24, 1, 1}, {4, 6, 10, 1, 0, 8}};
  /// States of 64 bits beside rows of several inputs.
  WholeScanShapes whole_wide_several{{3, 8, 28, 1, 1}, {3, 8, 8, 1, 1, 6}};
  /// Rows much shorter than what is stored for them.
  WholeScanShapes whole_short{{3, 4, 60, 1, 3}, {3, 4, 28, 1, 3, 8}};
  StagedScanShape all_segments{3, 8, 16, 4, 0};
  /// Of four bytes and more, where segments take more tiles than a group has.
  StagedScanShape all_segments_long{2, 16, 24, 4, 1};
  StagedScanShape all_segments_wide{2, 8, 24, 4, 0};
  /// Of one segment, or where tiles hold whole ones, so that nobody waits.
  StagedScanShape segments{4, 4, 28, 4, 0};
  StagedScanShape segments_wide{2, 16, 24, 4, 1};
  /// Several folds: what is made of rows leaves no registers for rows to stay.
  StagedScanShape several{4, 0, 16, 4, 0};
  /// States that tiles take long to merge and look for. An H200, of a copy, recurrences of f32 of
  /// the whole input by 16 and 24 rows: 0.58 and 0.68.
  StagedScanShape quick{2, 0, 24, 4, 1}, quick_segments{2, 0, 24, 1, 0};
  /// Of minima and maxima, whose steps compilers take long for: half of the rows, in twice the
  /// blocks. Measured on an H200, of a copy and (NVRTC, ms) before and with these: the whole input,
  /// i8 0.80 (3678) and 0.80 (1386), i16 0.90 (1781) and 0.89 (889), f64 0.89 (1975) and 0.88
  /// (945), but f32 0.93 and 0.90; tiles of all segments of 4099, i16 0.94 (1556) and 0.93 (732),
  /// f16 0.94 (1151) and 0.94 (601), f32 0.95 (784) and 0.94 (464), but i8 0.82 and 0.76, f64 0.92
  /// and 0.89; segments of 65536, which are whole tiles then, i8 0.89 (1114) and 0.93 (451), f16
  /// 0.94 (932) and 0.95 (234), f32 0.95 (662) and 0.94 (218), f64 0.94 (638) and 0.94 (345).
  StagedScanShape extremes{4, 4, 12, 4, 0};
  StagedScanShape whole_extremes{4, 4, 12, 1, 3};
  /// Elements that are states of several f64 each want all the registers that there are.
  StagedScanShape moments{1, 0, 16, 4, 0};
  /// Segments of more tiles than this take turns, since most resident tiles would be of one and
  /// wait for each other. So many at once: of as many or more a processor's tiles are of several,
  /// and the same for launches of any number of segments. Measured on sm_90: 64 lie too far apart
  /// in memory.
  std::int64_t tiles_in_turn = 40;
  int interleaved = 16;
  /// Bytes of an element that is long.
  int long_element = 4;
  /// Warps of a processor with registers enough for rows to stay.
  int many_warps = 32;
  /// Rows for whose exchanges there are registers.
  int rows_under_way = 4;
  /// Shared memory of a block besides its rows.
  int besides = 2 * 1024;
};

}  // namespace chainfold::codegen
