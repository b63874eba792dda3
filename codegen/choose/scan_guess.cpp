#include "chainfold/codegen/choose/scan_guess.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <vector>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/scan_shapes.hpp"

namespace chainfold::codegen {

namespace {

/// Registers of a lane that a value takes.
int words_of(DType type) { return std::max(1, size_of(type) / 4); }

/// A guess of a lane's registers for `rows` rows of `width` elements, and for their values. Copies
/// of states wait in them as well in a scan with a carry. What the guess is compared with was found
/// by compiling; only that nothing spills depends on it.
int lane_registers(const Graph& graph, const Target& target, int rows, int width) {
  int registers =
      tuned_for(target).scans.address_registers + rows * width * element_bytes(graph) / 4;
  for (const Fold& fold : graph.folds) {
    int words = 0;
    const std::vector<DType> fields = scanned_fields(fold);
    for (const DType type : fields) words += words_of(type);
    // Merges of one field are one instruction, those of a user's own many.
    const int copies = fields.size() == 1 ? 2 : fold.linear ? 3 : fold.commutative ? 6 : 8;
    registers += words * copies + (fold.linear ? words_of(fold.result()) : words) * width;
  }
  return registers;
}

/// Whether states have several fields that merges compute with, or elements a filter. The compiler
/// keeps what is made of such elements from the fold of a run to its scan.
bool keeps_lifted_rows(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) return false;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    return node.filter != kNoNode || (!fold.linear && carried_fields(fold).size() > 1);
  });
}

/// Rows of a scan in both directions. Values of the pass that comes first wait for those of the
/// other, in `waiting_words` words of a lane's registers at most.
int most_waiting_rows(const Graph& graph, const Target& target, int width) {
  int words = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::scan && node.reverse) words += words_of(node.type);
  }
  return std::clamp(tuned_for(target).scans.waiting_words / (width * std::max(1, words)), 1,
                    kMostRunRows);
}

/// Groups of 32 tiles that a CPU's threads take in `cpu_window_rounds` trips: what is further back
/// was published long ago. Above 128 threads the most groups are less than two trips.
int groups_of_rounds(const Target& target) {
  const TunedScans& tuned = tuned_for(target).scans;
  constexpr int kGroup = 32;
  return std::clamp((tuned.cpu_window_rounds * target.processors - 1) / kGroup + 1, 1,
                    tuned.cpu_most_window);
}

/// Warps of a multiprocessor that have registers enough.
int most_warps(const Graph& graph, const Target& target, int lane_registers) {
  const TunedScans& tuned = tuned_for(target).scans;
  if (lane_registers <= tuned.registers_of_32_warps && !keeps_lifted_rows(graph)) return 32;
  return lane_registers <= tuned.registers_of_16_warps ? 16 : 8;
}

/// Rows of a warp where a segment's fold is broadcast to its elements. In blocks of several
/// segments running values wait for these. A CPU's loads are too narrow for it to matter.
int most_broadcast_rows(const Graph& graph, const Target& target, int width) {
  const TunedScans& tuned = tuned_for(target).scans;
  const std::vector<bool> asked = broadcast_folds(graph);
  int words = 0;
  for (std::size_t f = 0; f < asked.size(); ++f)
    if (asked[f]) words += words_of(graph.folds[f].result());
  return words == 0 ? tuned.run_rows : std::max(1, tuned.broadcast_words / (width * words));
}

/// Warps of a multiprocessor that have registers enough for blocks of several segments where values
/// wait; 0: nothing waits. Values wait for these segments' ends or for the pass in the other
/// direction. Such blocks serve better than a warp's tile of more than `tile_rows` rows
/// (docs/tuned-values.md#values-that-wait).
int warps_of_waiting(const Graph& graph, const Target& target, int rows, int width) {
  const TunedScans& tuned = tuned_for(target).scans;
  if (!values_wait(graph)) return 0;
  const int warps = scan_warps(graph, target, rows, width);
  return scans_both_ways(graph) && rows * width > tuned.few_words_both_ways
             ? std::min(warps, tuned.warps_both_ways)
             : warps;
}

}  // namespace

int rows_of_whole_tile(const Graph& graph, const Target& target, std::int64_t segment) {
  const TunedScans& tuned = tuned_for(target).scans;
  const bool on_lines = is_plain(graph) && !scans_both_ways(graph) && lines_along(graph) >= 0;
  if (segment % kWarpWidth == 0 || !on_lines) return 0;
  const std::int64_t rows = segment / std::gcd(segment, std::int64_t{kWarpWidth});
  const bool serves = segment < tuned.longest_whole_tile ||
                      (segment < tuned.longest_whole_tile_of_halves &&
                       rows <= tuned.rows_of_halves && widest_output(graph) < 4);
  const auto folds = static_cast<std::int64_t>(graph.folds.size());
  return serves && rows * folds <= tuned.rows_of_whole_tile ? static_cast<int>(rows) : 0;
}

bool has_long_merges(const Graph& graph, const Target& target) {
  const TunedScans& tuned = tuned_for(target).scans;
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [&](const Fold& fold) { return fold.merge.steps.size() >= tuned.long_merge; });
}

int scan_warps(const Graph& graph, const Target& target, int rows, int width) {
  return std::min(most_warps(graph, target, lane_registers(graph, target, rows, width)),
                  target.resident_warps);
}

std::optional<PlanChoice> scan_choice_of(Strategy strategy, const Graph& graph,
                                         const Target& target, const PlanRequest& request,
                                         bool mma) {
  const TunedScans& tuned = tuned_for(target).scans;
  PlanChoice choice;
  choice.strategy = strategy;
  choice.mma = mma;
  choice.bytes = target.vector_bytes;
  const bool one_warp = target.is_cpu(), both_ways = scans_both_ways(graph);
  const int widest =
      widest_load(target, request, mma ? widest_input(graph) : widest_of_scan(graph));
  const std::int64_t s = request.segment;
  // Of loads of so many elements.
  const auto bytes_of = [&](int width) {
    return std::max(1, std::min(target.vector_bytes, request.base_alignment) * width / widest);
  };
  // In 1024 elements.
  const auto tile_of = [&](int of_bytes) {
    return std::max(1, of_bytes / (1024 * widest_of_scan(graph)));
  };
  // Rows that registers hold: of all inputs, as they come from memory.
  const int bytes =
      std::max(1, element_bytes(graph));  // positions alone are scanned without an input
  const int fit = std::max(1, tuned.run_bytes / (bytes * widest));
  const int most = has_long_merges(graph, target)                       ? 1
                   : graph.folds.size() > 1 || keeps_lifted_rows(graph) ? tuned.run_rows / 2
                                                                        : tuned.run_rows;
  const int rows = static_cast<int>(std::bit_floor(
      static_cast<unsigned>(std::min({most, fit, most_broadcast_rows(graph, target, widest)}))));
  const int registers = lane_registers(graph, target, rows, widest);
  choice.warps = one_warp ? 1 : 8;
  choice.depth = std::min(tuned.tile_rows, rows);
  switch (strategy) {
    case Strategy::scan_tile:
      if (s < 1) return std::nullopt;
      if (one_warp) choice.depth = std::max(choice.depth, rows_of_whole_tile(graph, target, s));
      if (one_warp && both_ways && s > kWarpWidth) choice.depth = tuned.cpu_rows_both_ways;
      for (int depth = choice.depth; depth <= most_run_rows(target, strategy); depth *= 2) {
        choice.depth = depth;
        const auto run = choose_run(graph, s, depth, widest);
        if (!run) continue;
        if (!one_warp && depth <= tuned.tile_rows) {
          const int least =
              std::clamp(tuned.least_row_bytes / (bytes * widest * kWarpWidth), 1, tuned.tile_rows);
          choice.depth = choose_short_run(graph, s, *run, least).rows;
          // Multiprocessors with fewer warps also hold fewer blocks.
          const int least_warps =
              target.resident_warps < tuned.many_resident_warps ? tuned.short_warps : 1;
          choice.warps =
              std::clamp(tuned.short_rows / choice.depth, least_warps, tuned.short_warps);
        }
        return choice;
      }
      return std::nullopt;
    case Strategy::scan_run:
      if (s < 1 && !one_warp) return std::nullopt;
      choice.depth = cpu_range_depth(graph);
      if (s > 0 && choice.depth > 1) {
        // Of places short segments have many rows with a better value, which are much code.
        const bool places = scans_places(graph);
        const std::int64_t rows = s / (places ? kWarpWidth * kWarpWidth : kWarpWidth);
        choice.depth =
            static_cast<int>(std::clamp<std::int64_t>(rows, places ? 1 : 2, kCpuRangeDepth));
      }
      return choice;
    case Strategy::scan_block: {
      if (s < 1 || one_warp) return std::nullopt;
      const std::int64_t row = std::int64_t{kWarpWidth} * widest_divisor(s, widest);
      const std::int64_t needed = (s - 1) / row + 1;
      const int most_of_block = std::min(
          {tuned.most_block_warps, most_warps(graph, target, registers), target.max_warps});
      // Short segments by few warps, so that several blocks share a multiprocessor. What else has
      // both directions reads its input twice: there rows may be more.
      const int most_rows =
          both_ways ? std::max(rows, most_waiting_rows(graph, target, widest_divisor(s, widest)))
                    : rows;
      if (s > std::int64_t{kWarpWidth} * widest * kMostRunRows * most_of_block) return std::nullopt;
      // Where a block holds so many segments that they are whole loads, these are worth more. Tiles
      // that lie on loads are worth more than loads of less than half of the widest
      // (docs/tuned-values.md#propagate).
      const std::int64_t tile =
          std::int64_t{kWarpWidth} * widest * tuned.rows_within_loads * tuned.warps_within_loads;
      const bool has_tiles = values_wait(graph) && s > tile;
      const int narrowest = has_tiles ? std::max(1, widest / 2) : 1;
      for (int width = widest; s % width != 0 && width >= narrowest; width /= 2) {
        const std::int64_t unit = width / std::gcd(s, std::int64_t{width}) * s;
        const int group_rows = std::min(tuned.most_group_rows, rows * widest / width);
        const int resident = warps_of_waiting(graph, target, group_rows, width);
        const auto shape = choose_block(unit, std::int64_t{kWarpWidth} * width, most_of_block,
                                        group_rows, resident);
        if (!shape) continue;
        choice.warps = shape->warps;
        choice.depth = shape->depth;
        choice.bytes = bytes_of(width);
        choice.occupancy = resident > 0
                               ? shape->blocks
                               : scan_warps(graph, target, choice.depth, width) / choice.warps;
        return choice;
      }
      if (widest_divisor(s, widest) < narrowest) return std::nullopt;
      // By the loads that divide the segment, although its neighbours might fit.
      choice.bytes = bytes_of(widest_divisor(s, widest));
      std::uint64_t warps = 0;
      for (int depth = rows; depth <= most_rows; depth *= 2) {
        warps = std::bit_ceil(static_cast<std::uint64_t>((needed + depth - 1) / depth));
        if (warps <= static_cast<std::uint64_t>(most_of_block)) break;
      }
      if (warps > static_cast<std::uint64_t>(most_of_block)) return std::nullopt;
      choice.warps = static_cast<int>(warps);
      choice.depth = static_cast<int>((needed + choice.warps - 1) / choice.warps);
      return choice;
    }
    case Strategy::look_back:
    case Strategy::propagate:
      choice.depth = one_warp && !both_ways ? cpu_range_depth(graph) : rows;
      if (!one_warp) {
        const auto few = shape_of_few(graph, target, request);
        // Where registers hold `run_rows`, tiles that wait for no other may have more.
        if (few) choice.depth = rows < tuned.run_rows ? std::min(rows, few->rows) : few->rows;
        const int needed = lane_registers(graph, target, std::max(rows, choice.depth), widest);
        int warps = std::min(most_warps(graph, target, needed), target.resident_warps);
        const bool within_loads = strategy == Strategy::propagate && s > 0 && s % widest != 0;
        if (within_loads) choice.depth = std::min(choice.depth, tuned.rows_within_loads);
        if (within_loads && both_ways)
          warps = std::min(warps, warps_of_waiting(graph, target, choice.depth, widest));
        const int tile_warps = within_loads ? tuned.warps_within_loads : kTileWarps;
        choice.warps = std::min(few ? few->warps : tile_warps, warps);
        choice.occupancy = warps / choice.warps;
      } else if (!both_ways) {
        choice.tile = tile_of(cpu_tile_bytes(graph, target, request));
      }
      return choice;
    case Strategy::look_ahead: {
      if (graph.inputs.empty() || both_ways) return std::nullopt;
      if (one_warp) {
        choice.depth = cpu_range_depth(graph);
        choice.tile = std::max(
            1, tuned.cpu_ahead_tile_bytes / (1024 * std::max(bytes, widest_of_scan(graph))));
        choice.window = groups_of_rounds(target);
        choice.stages = 2;
        choice.occupancy = 1;
        return choice;
      }
      if (!target.bulk_copies) return std::nullopt;
      const int most_of_block =
          std::min(most_warps(graph, target, registers), target.resident_warps) /
          tuned.stage_blocks;
      choice.warps = std::min(kTileWarps, most_of_block);
      choice.occupancy = tuned.stage_blocks;
      choice.stages = tuned.stages;
      const std::int64_t row = std::int64_t{kWarpWidth} * widest * bytes;
      const std::int64_t most =
          tuned.stage_bytes / (row * choice.warps * tuned.stage_blocks * tuned.stages);
      choice.depth =
          std::clamp(static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(most))), 1, rows);
      const std::int64_t tile = std::int64_t{kWarpWidth} * widest * choice.depth * choice.warps;
      if (s > 0 && s <= tile) return std::nullopt;  // other strategies have no need to wait
      return choice;
    }
    default: return std::nullopt;
  }
}

}  // namespace chainfold::codegen
