// Plans of look_back whose tiles come through shared memory.
//
// A tile lives for a while: its elements come, are folded, and wait for what comes before them. All
// that a multiprocessor has on its way lies meanwhile in registers or in shared memory, which
// together hold about twice what registers do. What is staged is read twice from there; registers
// hold only the rows besides.
#include "chainfold/codegen/choose/scan_staged.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
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

/// Elements of a tile of `shape`, whose rows all have room in shared memory.
std::int64_t tile_of(const StagedScanShape& shape, std::int64_t row_elements) {
  return row_elements * shape.warps * (shape.kept + shape.staged);
}

/// Rows of `bytes` bytes that have room in shared memory.
int staged_rows(const Target& target, const StagedScanShape& shape, int blocks,
                std::int64_t bytes) {
  const TunedStagedScans& tuned = tuned_for(target).staged_scans;
  const std::int64_t of_block = target.shared_of(blocks) - tuned.besides;
  const std::int64_t of_warp = std::min<std::int64_t>(of_block, target.shared_bytes) / shape.warps;
  const std::int64_t rows = std::min<std::int64_t>(shape.staged, of_warp / bytes);
  if (shape.blocked > 0) return static_cast<int>(rows - (rows % 2 == 0 ? 1 : 0));
  return static_cast<int>(rows / shape.round * shape.round);
}

/// A row of the widest loads, and the warps of a multiprocessor that have registers for such rows.
struct StagedRow {
  int width, warps;
  std::int64_t elements, bytes;
};
StagedRow staged_row(const Graph& graph, const Target& target, bool mma) {
  const TunedStagedScans& tuned = tuned_for(target).staged_scans;
  const int bytes = element_bytes(graph);
  const int element = mma ? widest_input(graph) : widest_of_scan(graph);
  const int width = std::max(1, target.vector_bytes / element);
  const std::int64_t row = std::int64_t{kWarpWidth} * width;
  return {width, scan_warps(graph, target, tuned.rows_under_way, width), row, row * bytes};
}

/// Blocks of a multiprocessor, which has registers for so many.
int blocks_of(const StagedScanShape& shape, const StagedRow& row) {
  return std::min(row.warps / shape.warps, shape.blocks);
}

/// The shape of tiles of one segment each: `usual`, or `in_turn` where segments take many tiles.
StagedScanShape shape_of_one(const Target& target, std::int64_t segment, const StagedRow& row,
                             const StagedScanShape& usual, StagedScanShape in_turn) {
  const TunedStagedScans& tuned = tuned_for(target).staged_scans;
  const int blocks = std::max(1, blocks_of(in_turn, row));
  const int rows = staged_rows(target, in_turn, blocks, row.bytes) + in_turn.kept;
  if (segment <= tuned.tiles_in_turn * row.elements * in_turn.warps * rows) return usual;
  in_turn.interleaved = tuned.interleaved;
  return in_turn;
}

StagedScanShape shape_of(const Graph& graph, const Target& target, const PlanRequest& request,
                         const StagedRow& row, bool mma, bool heads) {
  const TunedStagedScans& tuned = tuned_for(target).staged_scans;
  auto of_one_segment = [&](const StagedScanShape& usual, const StagedScanShape& in_turn) {
    return shape_of_one(target, request.segment, row, usual, in_turn);
  };
  if (scans_places(graph)) {
    const StagedScanShape& shape =
        heads && widest_input(graph) > tuned.long_element ? tuned.wide_places : tuned.places;
    return of_one_segment(shape, shape);
  }
  if (graph.folds.size() > 1 || row.warps < tuned.many_warps || has_moments(graph)) {
    const StagedScanShape& shape = has_moments(graph) ? tuned.moments : tuned.several;
    if (!heads && has_quick_folds(graph))
      return request.is_whole() ? tuned.quick
                                : of_one_segment(tuned.quick_segments, tuned.quick_segments);
    return heads || request.is_whole() ? shape : of_one_segment(shape, shape);
  }
  const bool is_wide = has_wide_states(graph);
  const std::int64_t full = std::int64_t{kWarpWidth} * target.vector_bytes;
  const bool is_short = row.bytes < full, is_one = row.bytes == full;
  const bool is_long = is_one && row.width <= target.vector_bytes / tuned.long_element;
  const bool by_lanes = request.is_whole() && !mma && target.wide_sums && copies_out(graph) &&
                        sums_wide(graph.folds[0]);
  const WholeScanShapes& everything = is_short ? tuned.whole_short
                                      : is_wide
                                          ? (is_one ? tuned.whole_wide : tuned.whole_wide_several)
                                      : is_long ? tuned.whole_long
                                      : is_one  ? (by_lanes ? tuned.whole_blocked : tuned.whole)
                                                : tuned.whole_several;
  if (scans_extreme(graph)) {
    const int element = widest_input(graph);
    const bool is_narrow = element < tuned.long_element && is_integer(graph.inputs[0].type);
    const bool whole_tiles =
        request.segment > 0 && request.segment % tile_of(tuned.extremes, row.elements) == 0;
    if (request.is_whole() && request.is_unlimited() && (is_wide || is_narrow))
      return tuned.whole_extremes;
    if (heads && !is_wide && element > 1) return tuned.extremes;
    if (!heads && whole_tiles) return of_one_segment(tuned.extremes, everything.many);
  }
  if (request.is_whole()) return !request.is_unlimited() ? everything.few : everything.many;
  if (!heads) {
    return of_one_segment(is_wide && is_one ? tuned.segments_wide : tuned.segments,
                          everything.many);
  }
  if (is_wide && is_one) return tuned.all_segments_wide;
  if (is_wide || is_short) return tuned.segments;
  const int rows =
      staged_rows(target, tuned.segments, tuned.segments.blocks, row.bytes) + tuned.segments.kept;
  if (row.elements * tuned.segments.warps * rows % request.segment == 0) return tuned.segments;
  const StagedScanShape& tall = tuned.all_segments_long;
  const std::int64_t tile = tile_of(tall, row.elements);
  return is_long && request.segment > kWarpWidth * tile ? tall : tuned.all_segments;
}

}  // namespace

std::int64_t small_tile_limit(const Graph& graph, const Target& target) {
  if (scans_both_ways(graph) || broadcasts(graph)) return 0;
  const PlanRequest request{.segment = 0, .size_limit = 1};
  const auto choice = staged_scan_choice(graph, target, request);
  if (!choice || choice == staged_scan_choice(graph, target, {.segment = 0})) return 0;
  const StagedRow row = staged_row(graph, target, false);
  const StagedScanShape shape = shape_of(graph, target, request, row, false, false);
  const std::int64_t tile = row.elements * choice->warps * choice->depth;
  return shape.waves * tile * target.processors * choice->occupancy;
}

bool scans_extreme(const Graph& graph) {
  if (graph.folds.size() != 1) return false;
  const std::optional<Op>& tile = graph.folds[0].tile;
  return tile == Op::min || tile == Op::max;
}

bool scans_places(const Graph& graph) { return graph.folds.size() == 1 && graph.folds[0].place; }

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
  if (!target.bulk_copies || graph.inputs.empty() || has_long_merges(graph, target))
    return std::nullopt;
  auto choice = scan_choice_of(Strategy::look_back, graph, target, request, mma);
  if (!choice) return std::nullopt;
  const StagedRow row = staged_row(graph, target, mma);
  // Where loads are narrow, rows are short and their merges outweigh the wait.
  const int element = mma ? widest_input(graph) : widest_of_scan(graph);
  if (std::min(target.vector_bytes, request.base_alignment) < row.width * element)
    return std::nullopt;
  if (!heads && request.segment % row.width != 0) return std::nullopt;
  const StagedScanShape shape = shape_of(graph, target, request, row, mma, heads);
  choice->heads = heads ? 1 : 0;
  choice->window = shape.window;
  choice->blocked = shape.blocked;
  choice->warps = shape.warps;
  choice->occupancy = blocks_of(shape, row);
  if (choice->occupancy < 1) return std::nullopt;
  choice->staged = staged_rows(target, shape, choice->occupancy, row.bytes);
  if (choice->staged <= 0) return std::nullopt;
  choice->depth = choice->staged + shape.kept;
  const std::int64_t s = request.segment;
  choice->interleaved = shape.interleaved;
  if (s == 0 || heads || shape.interleaved > 0) return choice;  // of many tiles one may have less
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
