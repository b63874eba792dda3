// What of a scan's plan follows from its choice.
#include "chainfold/codegen/plan/derive_scan.hpp"

#include <algorithm>
#include <bit>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/hints.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/scan_bound.hpp"
#include "chainfold/codegen/plan/scan_shapes.hpp"
#include "chainfold/codegen/plan/streams.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/target/const_matrix.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// With rows in shared memory, of which each is a piece of the fold's code.
constexpr int kMostRows = 64;
/// look_ahead: tiles in shared memory or on their way.
constexpr int kMostStages = 8;
/// A CPU's task should take longer than starting it.
constexpr std::int64_t kCpuTaskElements = 16 * 1024;

/// Whether launches with non-temporal stores move rows of ranges to lines of memory
/// (docs/tuned-values.md#scans-on-a-cpu). They do where folds are so plain that memory is what they
/// wait for, and where segments are long. What is done twice then costs less than other rows save:
/// rows that segments share (has_seams), and rows in which ranges begin or end. Short segments of
/// outputs below 4 bytes, whose conversions take long, move only where threads are many.
bool moves_to_lines(const Graph& graph, const Plan& plan, const Target& target) {
  constexpr std::int64_t kLeastElements = 64, kLeastBytes = 1536;
  if (!is_plain(graph) || plan.scan.in_registers || plan.hints.non_temporal_from == 0 ||
      lines_along(graph) < 0)
    return false;
  const std::int64_t s = plan.segment;
  if (s == 0 || s >= kLeastBytes / widest_output(graph)) return true;
  const bool converts = widest_output(graph) < 4;
  return plan.strategy == Strategy::scan_run && s >= kLeastElements &&
         (!converts || has_many_threads(target));
}

/// Gives the folds that matrix instructions can scan to them; whether there are any.
bool place_on_quads(Plan& plan, const Graph& graph, const Target& target) {
  if (!plan.scan.in_registers || !fits_quads(plan)) return false;
  bool any = false;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) continue;
    const MmaOperands data = mma_operands(graph, node);
    if (data.a == kNoNode || data.b != kNoNode) continue;
    const DType type = graph.node(data.a).type;
    if (type == DType::f32) continue;  // its low bits would be lost
    const int index = find_mma_of(type, target.arch, plan.load_width);
    if (index < 0) continue;
    const MmaRow& row = mma_table()[static_cast<std::size_t>(index)];
    if (QuadLayout(row).held < 2) continue;  // a lane's two columns are its own elements
    if (is_float(row.accumulator) && row.accumulator != node.type) continue;
    plan.folds[static_cast<std::size_t>(node.index)] = {.unit = Unit::mma_scan, .mma_row = index};
    plan.promises.guard = plan.promises.guard ||
                          (is_float(row.accumulator) && plan.promises.nonfinite == NonFinite::ieee);
    any = true;
  }
  return any;
}

/// The warps that scan the states of tiles, and the states of a lane. A trip of a warp takes as
/// long whatever it holds (docs/decisions/0041-propagate.md). So tiles by the ten thousand are many
/// warps' with several states a lane; what one warp takes at once needs neither.
void derive_states(Plan& plan, const Target& target) {
  constexpr int kMostWarps = 16, kStatesALane = 4;
  if (plan.scan.direct || target.is_cpu()) return;
  std::int64_t warps = kMostWarps;
  if (plan.segment > 0) {
    const std::int64_t tiles = tiles_of_segment(plan);
    if (tiles <= kWarpWidth) return;
    warps = std::min(warps, (tiles - 1) / (kWarpWidth * kStatesALane) + 1);
  }
  plan.scan.state_warps = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(warps)));
  plan.scan.states_a_lane = kStatesALane;
}

/// What a block's tile is: its warps' rows, or, where these are read twice, a range; whether the
/// choice says which.
bool place_tile(Plan& plan, const PlanChoice& choice, bool is_range) {
  plan.scan.in_registers = !is_range;
  if (is_range != (choice.tile > 0)) return false;
  if (is_range) {
    plan.load_width = 1;
    plan.scan.range_depth = choice.depth;
    plan.scan.tile = std::int64_t{choice.tile} * 1024;
  } else {
    plan.scan.tile = std::int64_t{kWarpWidth} * plan.load_width * plan.depth * plan.warps;
  }
  return true;
}

}  // namespace

bool derive_scan(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                 int widest) {
  const std::int64_t s = plan.segment;
  const bool one_warp = target.is_cpu();
  plan.strategy = choice.strategy;
  plan.lanes_per_segment = kWarpWidth;
  plan.rows = 1;
  plan.launches = 1;
  plan.scan.in_registers = true;
  plan.scan.range_depth = one_warp ? cpu_range_depth(graph) : 1;
  plan.scan.range_width = range_width_of(graph, target);
  plan.scan.range_load = range_load_of(graph, target);
  plan.vector_lanes = target.vector_lanes;
  plan.hints.screens = screens_batches(plan, graph, target);
  // Segments of folds that compute slowly do not wait for memory, and code with non-temporal stores
  // would be as much again (docs/tuned-values.md#scans-on-a-cpu).
  plan.hints.non_temporal_from = s > 0 && computes_slowly(graph) ? 0 : target.non_temporal_bytes;
  plan.scan.heads = choice.heads > 0;
  plan.load_width = s > 0 && !plan.scan.heads ? widest_divisor(s, widest) : widest;
  // Segments of several tiles may begin within loads. Memory of a CPU's target is accessed
  // anywhere.
  if (choice.strategy == Strategy::propagate && !one_warp &&
      s > std::int64_t{kWarpWidth} * widest * choice.depth * choice.warps)
    plan.load_width = widest;
  plan.depth = choice.depth;
  plan.occupancy = choice.occupancy;
  if (choice.depth > kMostRows) return false;
  if (choice.depth - choice.staged > most_run_rows(target, choice.strategy)) return false;
  if (choice.occupancy * choice.warps > target.resident_warps) return false;
  const bool both_ways = scans_both_ways(graph);  // rows are there for a pass each
  if (plan.scan.heads && (choice.strategy != Strategy::look_back || choice.heads > 1 || one_warp ||
                          choice.tile > 0 || !heads_serve(graph, s)))
    return false;
  plan.scan.window = choice.window;
  plan.scan.interleaved = choice.interleaved;
  plan.scan.blocked = choice.blocked > 0;
  if (choice.blocked > 1 || (plan.scan.blocked && (choice.staged == 0 || !target.bulk_copies)))
    return false;
  if (choice.interleaved > 0 && choice.strategy != Strategy::look_back) return false;
  plan.scan.direct = choice.direct > 0;
  if (choice.direct > 1) return false;
  if (plan.scan.direct && !direct_serves(plan, graph, target)) return false;
  switch (choice.strategy) {
    case Strategy::scan_tile: {
      if (s < 1) return false;
      const auto tile = choose_run(graph, s, choice.depth, widest);
      if (!tile) return false;
      plan.load_width = tile->width;
      plan.depth = tile->rows;
      plan.scan.tile_segments = tile->segments;
      return true;
    }
    case Strategy::scan_run:
      if ((s < 1 && !one_warp) || both_ways) return false;
      plan.load_width = 1;
      plan.scan.in_registers = false;
      plan.scan.range_depth = choice.depth;
      plan.scan.tile_segments =
          one_warp && s > 0 ? std::max<std::int64_t>(1, kCpuTaskElements / s) : 1;
      return true;
    case Strategy::scan_block: {
      if (s < 1 || one_warp) return false;
      const auto group = choose_group(graph, s, widest, plan.depth * plan.warps);
      if (!group) return false;
      plan.load_width = group->width;
      plan.scan.tile_segments = group->segments;
      return group->segments == 0 || group_fits(plan, graph, target);
    }
    case Strategy::look_back:
    case Strategy::propagate:
      // What the last tile adds is known only when all others have been scanned, but by propagate.
      if (choice.strategy == Strategy::look_back && (both_ways || broadcasts(graph))) return false;
      if (!place_tile(plan, choice, one_warp && !both_ways)) return false;
      if (!interleaving_serves(plan)) return false;
      plan.scan.ragged = is_ragged(plan, graph);
      plan.launches = choice.strategy == Strategy::look_back || plan.scan.direct ? 2 : 3;
      if (choice.strategy == Strategy::propagate) derive_states(plan, target);
      if (choice.staged == 0) return true;
      if (choice.strategy != Strategy::look_back || !plan.scan.in_registers) return false;
      plan.scan.staged_rows = choice.staged;
      plan.stages = 1;
      return choice.staged <= choice.depth && !graph.inputs.empty() &&
             blocked_serves(plan, graph) && staged_tiles_fit(plan, graph, target);
    case Strategy::look_ahead:
      if (both_ways || broadcasts(graph) || graph.inputs.empty()) return false;
      if (choice.stages < 2 || choice.stages > kMostStages || choice.occupancy < 1) return false;
      if (!place_tile(plan, choice, one_warp)) return false;
      plan.stages = choice.stages;
      plan.blocks = std::int64_t{target.processors} * choice.occupancy;
      plan.launches = 2;
      plan.scan.ragged = is_ragged(plan, graph);
      if (!plan.scan.in_registers) return true;
      plan.scan.staged_rows = plan.depth;
      return staged_tiles_fit(plan, graph, target);
    default: return false;
  }
}

std::optional<Plan> make_scan_plan(const Plan& plan, const PlanChoice& choice, const Graph& graph,
                                   const Target& target, const PlanRequest& request,
                                   const std::vector<double>& allowed) {
  auto bounded = [&](Plan& tried) {
    for (const bool states : {false, true}) {
      bool within = true;
      tried.combine_states = states;
      for (std::size_t f = 0; f < tried.folds.size(); ++f) {
        tried.folds[f].error_bound_u = scan_error_bound(graph, tried, target, f);
        within = within && tried.folds[f].error_bound_u <= allowed[f];
      }
      if (within) return true;
    }
    return false;
  };
  const int bytes = std::min({target.vector_bytes, request.base_alignment, choice.bytes});
  auto elements = [&](int of_bytes) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(std::max(1, bytes / of_bytes))));
  };
  if (choice.mma && choice.blocked == 0 && request.allow_mma) {
    // A load fills a fragment, however wide what is stored.
    for (int width = elements(widest_input(graph)); width > 1; width /= 2) {
      Plan quads = plan;
      if (derive_scan(quads, choice, graph, target, width) && window_serves(quads) &&
          quads.load_width == width && place_on_quads(quads, graph, target) && bounded(quads))
        return quads;
    }
  }
  Plan lanes = plan;
  const int width = elements(widest_of_scan(graph));
  if (!derive_scan(lanes, choice, graph, target, width) || !window_serves(lanes) || !bounded(lanes))
    return std::nullopt;
  const std::int64_t most = request.size_limit;
  if (most > 0 && most < lanes.hints.non_temporal_from / widest_output(graph))
    lanes.hints.non_temporal_from = 0;
  if (!choice.hints) {
    lanes.hints.non_temporal_from = 0;
    lanes.hints.screens = false;
    return lanes;
  }
  lanes.hints.to_lines = moves_to_lines(graph, lanes, target);
  lanes.hints.read_ahead = ahead_of(lanes, graph, target);
  return lanes;
}

}  // namespace chainfold::codegen
