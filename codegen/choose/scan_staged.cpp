// Plans of look_back whose tiles come through shared memory.
//
// A tile lives for a while: its elements come, are folded, and wait for what comes before them. All
// that a processor has on its way lies meanwhile in registers or in shared memory, which together
// hold about twice what registers do. What is staged is read twice from there; registers hold only
// the rows besides.
#include "chainfold/codegen/choose/scan_staged.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

namespace {

/// Where a run's rows are, found by measuring on sm_90 (docs/decisions/0010-scans.md).
struct Shape {
  int blocks;       ///< a processor
  int kept;         ///< rows in registers
  int staged;       ///< rows in shared memory, at most: their fold is unrolled
  int round;        ///< staged rows are a multiple
  int near;         ///< Plan::near
  int waves = 0;    ///< of such tiles on the device up to which they serve; 0: any number
  int across = 0;   ///< Plan::across
  int warps = 8;    ///< a block: fewer are more blocks, of which some compute while others wait
  int blocked = 0;  ///< Plan::blocked: rows are odd numbers, which no two lanes' banks share
};
/// Of everything: tiles for any number of elements, and smaller ones, so that what begins and ends
/// with the first and the last wave of them is less.
struct Everything {
  Shape many, few;
};
constexpr Everything kEverything{{2, 16, 24, 1, 1}, {4, 8, 8, 1, 3, 16}};
/// Sums whose lanes scan by themselves: nearly as fast, with a tenth less energy.
constexpr Everything kEverythingBlocked{
    {.blocks = 1, .kept = 15, .staged = 27, .round = 1, .near = 1, .warps = 16, .blocked = 1},
    kEverything.few};
/// Rows of several inputs take more registers.
constexpr Everything kEverythingSeveral{{4, 8, 28, 1, 3}, {4, 8, 8, 1, 3, 16}};
/// Elements of four bytes and more have half of the merges a byte, so that half of the warps keep
/// up: these have twice the registers.
constexpr Everything kEverythingLong{{2, 16, 24, 1, 1}, {4, 4, 12, 1, 3, 16}};
constexpr Everything kEverythingWide{{2, 16, 24, 1, 1}, {4, 6, 10, 1, 0, 8}};
/// States of 64 bits beside rows of several inputs.
constexpr Everything kEverythingWideSeveral{{3, 8, 28, 1, 1}, {3, 8, 8, 1, 1, 6}};
/// Rows much shorter than what is stored for them.
constexpr Everything kEverythingShort{{3, 4, 60, 1, 3}, {3, 4, 28, 1, 3, 8}};
constexpr Shape kAllSegments{3, 8, 16, 4, 0};
/// Of four bytes and more, where segments take more tiles than a group has.
constexpr Shape kAllSegmentsLong{2, 16, 24, 4, 1};
constexpr Shape kAllSegmentsWide{2, 8, 24, 4, 0};
/// Of one segment, or where tiles hold whole ones, so that nobody waits.
constexpr Shape kSegments{4, 4, 28, 4, 0};
constexpr Shape kSegmentsWide{2, 16, 24, 4, 1};
/// Several folds: what is made of rows leaves no registers for rows to stay.
constexpr Shape kSeveral{4, 0, 16, 4, 0};
/// States that tiles take long to merge and look for. An H200, of a copy, recurrences of f32 of
/// everything by 16 and 24 rows: 0.58 and 0.68.
constexpr Shape kQuick{2, 0, 24, 4, 1}, kQuickSegments{2, 0, 24, 1, 0};
/// Of minima and maxima, whose steps compilers take long for: half of the rows, in twice the
/// blocks. Measured on an H200, of a copy and (NVRTC, ms) before and with these: everything, i8
/// 0.80 (3678) and 0.80 (1386), i16 0.90 (1781) and 0.89 (889), f64 0.89 (1975) and 0.88 (945), but
/// f32 0.93 and 0.90; tiles of all segments of 4099, i16 0.94 (1556) and 0.93 (732), f16 0.94
/// (1151) and 0.94 (601), f32 0.95 (784) and 0.94 (464), but i8 0.82 and 0.76, f64 0.92 and 0.89;
/// segments of 65536, which are whole tiles then, i8 0.89 (1114) and 0.93 (451), f16 0.94 (932) and
/// 0.95 (234), f32 0.95 (662) and 0.94 (218), f64 0.94 (638) and 0.94 (345).
constexpr Shape kExtremes{4, 4, 12, 4, 0};
constexpr Shape kEverythingExtremes{4, 4, 12, 1, 3};
/// Elements that are states of several f64 each want all the registers that there are.
constexpr Shape kMoments{1, 0, 16, 4, 0};

/// Segments of more tiles than this take turns, since most resident tiles would be of one and wait
/// for each other. So many at once: of as many or more a processor's tiles are of several, and the
/// same for launches of any number of segments. Measured on sm_90: 64 lie too far apart in memory.
constexpr std::int64_t kTilesInTurn = 40;
constexpr int kAcross = 16;

/// Bytes of an element that is long.
constexpr int kLongElement = 4;
/// Warps of a processor with registers enough for rows to stay.
constexpr int kManyWarps = 32;
/// Rows for whose exchanges there are registers.
constexpr int kRowsUnderWay = 4;
/// Shared memory of a block besides its rows.
constexpr int kBesides = 2 * 1024;

/// Elements of a tile of `shape`, whose rows all have room in shared memory.
std::int64_t tile_of(const Shape& shape, std::int64_t row_elements) {
  return row_elements * shape.warps * (shape.kept + shape.staged);
}

/// Rows of `bytes` bytes that have room in shared memory.
int staged_rows(const Target& target, const Shape& shape, int blocks, std::int64_t bytes) {
  const std::int64_t of_block = target.shared_of(blocks) - kBesides;
  const std::int64_t of_warp = std::min<std::int64_t>(of_block, target.shared_bytes) / shape.warps;
  const std::int64_t rows = std::min<std::int64_t>(shape.staged, of_warp / bytes);
  if (shape.blocked > 0) return static_cast<int>(rows - (rows % 2 == 0 ? 1 : 0));
  return static_cast<int>(rows / shape.round * shape.round);
}

/// A row of the widest loads, and the warps of a processor that have registers for such rows.
struct StagedRow {
  int width, warps;
  std::int64_t elements, bytes;
};
StagedRow staged_row(const Graph& graph, const Target& target, bool mma) {
  const int bytes = element_bytes(graph);
  const int element = mma ? widest_input(graph) : widest_of_scan(graph);
  const int width = std::max(1, target.vector_bytes / element);
  const std::int64_t row = std::int64_t{kWarpWidth} * width;
  return {width, scan_warps(graph, target, kRowsUnderWay, width), row, row * bytes};
}

/// Blocks of a processor, which has registers for so many.
int blocks_of(const Shape& shape, const StagedRow& row) {
  return std::min(row.warps / shape.warps, shape.blocks);
}

/// Of tiles of one segment each: `usual`, or `in_turn` of segments that take many such.
Shape shape_of_one(const Target& target, std::int64_t segment, const StagedRow& row,
                   const Shape& usual, Shape in_turn) {
  const int blocks = std::max(1, blocks_of(in_turn, row));
  const int rows = staged_rows(target, in_turn, blocks, row.bytes) + in_turn.kept;
  if (segment <= kTilesInTurn * row.elements * in_turn.warps * rows) return usual;
  in_turn.across = kAcross;
  return in_turn;
}

Shape shape_of(const Graph& graph, const Target& target, const PlanRequest& request,
               const StagedRow& row, bool mma, bool heads) {
  auto of_one_segment = [&](const Shape& usual, const Shape& in_turn) {
    return shape_of_one(target, request.segment, row, usual, in_turn);
  };
  if (graph.folds.size() > 1 || row.warps < kManyWarps || has_moments(graph)) {
    const Shape& shape = has_moments(graph) ? kMoments : kSeveral;
    if (!heads && has_quick_folds(graph))
      return request.segment == 0 ? kQuick : of_one_segment(kQuickSegments, kQuickSegments);
    return heads || request.segment == 0 ? shape : of_one_segment(shape, shape);
  }
  const bool is_wide = has_wide_states(graph);
  const std::int64_t full = std::int64_t{kWarpWidth} * target.vector_bytes;
  const bool is_short = row.bytes < full, is_one = row.bytes == full;
  const bool is_long = is_one && row.width <= target.vector_bytes / kLongElement;
  const bool by_lanes = request.segment == 0 && !mma && target.wide_sums && copies_out(graph) &&
                        sums_wide(graph.folds[0]);
  const Everything& everything = is_short  ? kEverythingShort
                                 : is_wide ? (is_one ? kEverythingWide : kEverythingWideSeveral)
                                 : is_long ? kEverythingLong
                                 : is_one  ? (by_lanes ? kEverythingBlocked : kEverything)
                                           : kEverythingSeveral;
  if (scans_extreme(graph)) {
    const int element = widest_input(graph);
    const bool is_narrow = element < kLongElement && is_integer(graph.inputs[0].type);
    const bool whole_tiles =
        request.segment > 0 && request.segment % tile_of(kExtremes, row.elements) == 0;
    if (request.segment == 0 && request.most_elements == 0 && (is_wide || is_narrow))
      return kEverythingExtremes;
    if (heads && !is_wide && element > 1) return kExtremes;
    if (!heads && whole_tiles) return of_one_segment(kExtremes, everything.many);
  }
  if (request.segment == 0) return request.most_elements > 0 ? everything.few : everything.many;
  if (!heads) {
    return of_one_segment(is_wide && is_one ? kSegmentsWide : kSegments, everything.many);
  }
  if (is_wide && is_one) return kAllSegmentsWide;
  if (is_wide || is_short) return kSegments;
  const int rows = staged_rows(target, kSegments, kSegments.blocks, row.bytes) + kSegments.kept;
  if (row.elements * kSegments.warps * rows % request.segment == 0) return kSegments;
  const Shape& tall = kAllSegmentsLong;
  const std::int64_t tile = tile_of(tall, row.elements);
  return is_long && request.segment > kWarpWidth * tile ? tall : kAllSegments;
}

}  // namespace

std::int64_t most_of_small_tiles(const Graph& graph, const Target& target) {
  if (scans_both_ways(graph) || broadcasts(graph)) return 0;
  const PlanRequest request{.segment = 0, .most_elements = 1};
  const auto choice = staged_scan_choice(graph, target, request);
  if (!choice || choice == staged_scan_choice(graph, target, {.segment = 0})) return 0;
  const StagedRow row = staged_row(graph, target, false);
  const Shape shape = shape_of(graph, target, request, row, false, false);
  const std::int64_t tile = row.elements * choice->warps * choice->depth;
  return shape.waves * tile * target.processors * choice->blocks;
}

bool scans_extreme(const Graph& graph) {
  if (graph.folds.size() != 1) return false;
  const std::optional<Op>& tile = graph.folds[0].tile;
  return tile == Op::min || tile == Op::max;
}

bool has_wide_states(const Graph& graph) {
  constexpr int kRegister = 4;
  return std::any_of(graph.folds.begin(), graph.folds.end(), [](const Fold& fold) {
    const std::vector<DType> fields = scanned_fields(fold);
    return std::any_of(fields.begin(), fields.end(),
                       [](DType type) { return size_of(type) > kRegister; });
  });
}

std::optional<PlanChoice> staged_scan_choice(const Graph& graph, const Target& target,
                                             const PlanRequest& request, bool mma, bool heads) {
  if (!target.bulk_copies || graph.inputs.empty() || has_long_merges(graph)) return std::nullopt;
  auto choice = scan_choice_of(Strategy::look_back, graph, target, request, mma);
  if (!choice) return std::nullopt;
  const StagedRow row = staged_row(graph, target, mma);
  // Where loads are narrow, rows are short and their merges outweigh the wait.
  const int element = mma ? widest_input(graph) : widest_of_scan(graph);
  if (std::min(target.vector_bytes, request.base_alignment) < row.width * element)
    return std::nullopt;
  if (!heads && request.segment % row.width != 0) return std::nullopt;
  const Shape shape = shape_of(graph, target, request, row, mma, heads);
  choice->heads = heads ? 1 : 0;
  choice->near = shape.near;
  choice->blocked = shape.blocked;
  choice->warps = shape.warps;
  choice->blocks = blocks_of(shape, row);
  if (choice->blocks < 1) return std::nullopt;
  choice->staged = staged_rows(target, shape, choice->blocks, row.bytes);
  if (choice->staged <= 0) return std::nullopt;
  choice->depth = choice->staged + shape.kept;
  const std::int64_t s = request.segment;
  choice->across = shape.across;
  if (s == 0 || heads || shape.across > 0) return choice;  // of many tiles one may have less
  // As many rows as share a segment evenly among its tiles.
  const std::int64_t of_block_row = row.elements * choice->warps;
  const std::int64_t tiles = (s - 1) / (of_block_row * choice->depth) + 1;
  const bool quick = has_quick_folds(graph);
  if (tiles == 1 && !quick) return std::nullopt;
  auto needed = static_cast<int>((s - 1) / (of_block_row * tiles) + 1);
  // Whole tiles alone have no masks, which are as much code again.
  if (quick && s % of_block_row == 0) {
    const std::int64_t rows = s / of_block_row;
    for (int each = choice->staged; 2 * each >= choice->staged && rows > each; --each) {
      if (rows % each != 0) continue;
      needed = each;
      break;
    }
  }
  int kept = shape.kept > 0 ? (needed - 1) % shape.kept + 1 : 0;
  const int wanted = (needed - kept + shape.round - 1) / shape.round * shape.round;
  if (wanted > choice->staged) kept = std::min(shape.kept, needed - choice->staged);
  choice->staged = std::min(choice->staged, wanted);
  if (choice->staged == 0) return std::nullopt;
  choice->depth = choice->staged + kept;
  return choice;
}

}  // namespace chainfold::codegen
