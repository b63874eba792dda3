#include "chainfold/codegen/plan/scan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan_shapes.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// Copies are of whole units of so many bytes.
constexpr int kCopyUnit = 16;

/// Positions in segments, twice the longest one's and a tile more, are numbers of 32 bits.
constexpr std::int64_t kLongestWithHeads = (std::int64_t{1} << 30) - (std::int64_t{1} << 20);

int all_tree_looks(const Plan& plan) {
  int looks = 0;
  for (int level = 0; level < kTreeLevels; ++level) looks += tree_looks(plan, level);
  return looks;
}

}  // namespace

bool begins_in_loads(const Plan& plan) {
  return plan.strategy == Strategy::propagate && plan.scan.in_registers && plan.segment > 0 &&
         plan.segment % plan.load_width != 0;
}

std::int64_t tiles_of_segment(const Plan& plan) {
  const std::int64_t before = begins_in_loads(plan) ? plan.load_width - 1 : 0;  // at most
  return (plan.segment + before - 1) / plan.scan.tile + 1;
}

bool group_fits(const Plan& plan, const Graph& graph, const Target& target) {
  std::int64_t bytes = 0;
  const auto add = [&](DType type, std::int64_t elements) {
    constexpr std::int64_t kUnit = 16;  // where an array begins
    bytes += (elements * size_of(type) + kUnit - 1) / kUnit * kUnit;
  };
  for (const Fold& fold : graph.folds) {
    for (const DType type : fold.state) add(type, plan.warps);
  }
  const std::vector<bool> asked = broadcast_folds(graph);
  for (std::size_t f = 0; f < asked.size(); ++f) {
    if (asked[f]) add(graph.folds[f].result(), plan.scan.tile_segments);
  }
  return target.fits_shared(bytes, plan.occupancy);
}

bool lanes_keep_ends(const Graph& graph, std::int64_t segment, int width) {
  return !broadcasts(graph) || segment >= width;
}

bool rows_hold_segments(std::int64_t segment, int width) {
  return std::int64_t{kWarpWidth} * width % segment == 0;  // powers of two, then
}

bool heads_serve(const Graph& graph, std::int64_t segment) {
  if (segment < 1 || segment > kLongestWithHeads) return false;
  // What is broadcast of whole segments waits for the last of their tiles. Tiles go on with each
  // other's values in one direction, and folds that are no scans go forward.
  if (broadcasts(graph) || scans_both_ways(graph)) return false;
  // Rows with heads have no range to fall back on where a quick fold does not serve.
  if (has_quick_folds(graph)) return false;
  auto any = [&](auto is) { return std::any_of(graph.nodes.begin(), graph.nodes.end(), is); };
  return !any([](const Node& node) { return node.reverse; }) ||
         !any([](const Node& node) { return node.kind == NodeKind::fold; });
}

int tree_looks(const Plan& plan, int level) {
  constexpr int kNearAbove = 1;
  if (plan.scan.window == 0 || level == kTreeLevels - 1) return 1;
  return 1 + (level == 0 ? plan.scan.window : kNearAbove);
}

bool window_serves(const Plan& plan) {
  constexpr int kGroup = 32;
  if (plan.scan.window == 0) return true;
  if (plan.scan.window < 0 || plan.scan.window >= kGroup) return false;
  if (!plan.scan.in_registers)  // one warp, after each other
    return plan.strategy == Strategy::look_back || plan.strategy == Strategy::look_ahead;
  return plan.strategy == Strategy::look_back && all_tree_looks(plan) <= plan.warps;
}

bool interleaving_serves(const Plan& plan) {
  if (plan.scan.interleaved == 0) return true;
  if (plan.strategy != Strategy::look_back || !plan.scan.in_registers || plan.scan.heads)
    return false;
  if (plan.scan.interleaved < 2 || plan.segment <= plan.scan.tile) return false;
  // A tile's place among those of its group of segments is a number of 32 bits.
  const std::int64_t tiles = tiles_of_segment(plan);
  return tiles <= std::numeric_limits<std::int32_t>::max() / plan.scan.interleaved;
}

bool copies_out(const Graph& graph) {
  if (graph.inputs.size() != 1) return false;
  int outputs = 0;
  for (const NodeId output : graph.outputs) {
    const Node& node = graph.node(output);
    if (node.level != Level::element) continue;
    ++outputs;
    if (node.type != graph.inputs[0].type) return false;
  }
  return outputs == 1;
}

bool blocked_serves(const Plan& plan, const Graph& graph) {
  if (!plan.scan.blocked) return true;
  if (plan.strategy != Strategy::look_back || plan.scan.staged_rows == 0 || plan.scan.heads)
    return false;
  if (plan.depth > 2 * plan.scan.staged_rows || plan.base_alignment < kCopyUnit) return false;
  if (!plan.scan.ragged && (plan.is_whole() || plan.segment % plan.scan.tile != 0)) return false;
  if (!copies_out(graph)) return false;
  const DType type = graph.inputs[0].type;
  if (!run_copy(plan, type).exact || plan.load_width * size_of(type) != kCopyUnit) return false;
  return std::all_of(plan.folds.begin(), plan.folds.end(),
                     [](const FoldPlan& how) { return how.unit == Unit::simt; });
}

bool is_ragged(const Plan& plan, const Graph& graph) {
  // Fewer tiles gain less than the code costs twice; of quick folds, which are much code, any
  // number gains (docs/tuned-values.md#look-back-tiles-in-shared-memory).
  constexpr std::int64_t kLeastTiles = 32;
  const std::int64_t least = has_quick_folds(graph) ? 1 : kLeastTiles;
  if (plan.scan.tile == 0 || !plan.scan.in_registers || plan.scan.heads) return false;
  if (plan.load_width == 1 || scans_both_ways(graph)) return false;  // rows end anywhere
  // Of few small tiles, which wait for no other, the last one would have code of its own that no
  // cache has yet. In larger tiles masks cost more (docs/tuned-values.md#scans-of-few-elements).
  if (plan.is_whole()) return !plan.scan.direct || plan.depth > kSmallTileRows;
  return plan.segment % plan.scan.tile != 0 && plan.segment > least * plan.scan.tile;
}

bool direct_serves(const Plan& plan, const Graph& graph, const Target& target) {
  const bool has_shared_memory = !target.is_cpu();
  return plan.strategy == Strategy::propagate && has_shared_memory && !broadcasts(graph) &&
         !scans_both_ways(graph);
}

std::int64_t quad_of(const Plan& plan) { return std::int64_t{4} * plan.load_width; }

bool fits_quads(const Plan& plan) {
  if (plan.scan.heads || begins_in_loads(plan) ||
      (plan.strategy == Strategy::scan_block && plan.scan.tile_segments > 0))
    return false;
  if (plan.strategy != Strategy::scan_tile) return true;  // rows are of one segment
  return plan.segment > 1 &&
         (plan.segment % quad_of(plan) == 0 || quad_of(plan) % plan.segment == 0);
}

std::int64_t staged_elements(const Plan& plan) {
  return std::int64_t{kWarpWidth} * plan.load_width * plan.scan.staged_rows;
}

StageCopy run_copy(const Plan& plan, DType input) {
  const int size = size_of(input);
  const auto run = static_cast<int>(staged_elements(plan));
  const bool on_units = plan.scan.heads || plan.segment % (kCopyUnit / size) == 0;
  const bool exact = plan.base_alignment >= kCopyUnit && on_units;
  return {.elements = exact ? run : run + kCopyUnit / size, .exact = exact, .unit = kCopyUnit};
}

std::int64_t staged_tile_bytes(const Plan& plan, const Graph& graph) {
  const std::int64_t slots = std::int64_t{plan.warps} * plan.stages;
  const std::int64_t run = staged_elements(plan);
  std::int64_t bytes = 0;
  for (const GraphInput& input : graph.inputs)  // runs off the copies' unit bring a unit more
    bytes += slots * (run * size_of(input.type) + kCopyUnit + 8) + kCopyUnit;
  // Totals of two tiles' warps, folds of what is looked at, the ticket.
  std::int64_t fields = 0;
  for (const Fold& fold : graph.folds) fields += static_cast<std::int64_t>(fold.state.size());
  return bytes + (2 * plan.warps + all_tree_looks(plan) + 1) * plan.state_bytes +
         (2 * fields + 1) * kCopyUnit;
}

bool staged_tiles_fit(const Plan& plan, const Graph& graph, const Target& target) {
  return target.async_copies && !has_packed(graph) &&
         target.fits_shared(staged_tile_bytes(plan, graph), plan.occupancy);
}

void verify_scan(const Plan& plan, const Graph& graph, const Target& target,
                 const RequireRule& require) {
  require(has_scans(graph), "a plan of scans has some");
  require(!plan.strided, "rows of scans have no gaps");
  require(plan.scan.range_depth >= 1 && plan.scan.range_width >= 1, "a range is scanned by rows");
  require(plan.scan.state_warps >= 1 && plan.scan.state_warps <= target.max_warps &&
              plan.scan.states_a_lane >= 1,
          "a block scans the states of tiles");
  require(plan.scan.range_load >= 1, "a range is folded by loads");
  require((plan.scan.range_width == 1 && plan.scan.range_load == 1) || target.accesses_anywhere,
          "rows of ranges begin anywhere");
  const std::int64_t run = std::int64_t{kWarpWidth} * plan.load_width * plan.depth;
  const std::int64_t s = plan.segment;
  require(plan.scan.in_registers || plan.load_width == 1, "ranges have widths of their own");
  require(plan.scan.ragged == is_ragged(plan, graph), "rows without masks are all there");
  for (const FoldPlan& how : plan.folds) {
    if (how.unit == Unit::simt) continue;
    require(how.unit == Unit::mma_scan && how.mma_row >= 0 && target.has_mma,
            "scans add by lanes or by quads");
    const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
    require(target.arch >= row.first_arch, "the architecture has the matrix instruction");
    require(plan.scan.in_registers && plan.load_width == row.elements(Operand::a),
            "a load is a fragment of operand A");
    require(fits_quads(plan), "segments begin and end with quads, or lie within them");
    require(row.rounding == MmaRounding::exact || plan.promises.guard ||
                plan.promises.nonfinite == NonFinite::assume_finite,
            "what comes before an element is guarded against its NaN");
  }
  const bool stays = plan.strategy == Strategy::look_ahead;
  require(!plan.scan.heads || (plan.strategy == Strategy::look_back && plan.scan.in_registers &&
                               heads_serve(graph, s)),
          "segments begin anywhere in the rows of tiles that wait");
  require(!plan.scan.direct || direct_serves(plan, graph, target),
          "tiles that fold what is before them know nothing of what is behind");
  require(window_serves(plan), "a warp looks at each group of tiles that wait");
  require(!plan.scan.blocked || target.bulk_copies,
          "the copy engine brings and takes blocked runs");
  require(blocked_serves(plan, graph), "one input's whole runs are copied in and out");
  require(interleaving_serves(plan),
          "tiles that wait for their own segment's are taken in any order");
  require(plan.scan.staged_rows == 0 || stays || plan.strategy == Strategy::look_back,
          "only tiles that wait are staged");
  require(plan.scan.staged_rows >= 0 && plan.scan.staged_rows <= plan.depth &&
              (plan.scan.staged_rows == 0 || plan.stages >= 1),
          "rows come through a stage");
  require(plan.scan.staged_rows == 0 ||
              (plan.scan.in_registers && staged_tiles_fit(plan, graph, target)),
          "stages fit the target's shared memory");
  switch (plan.strategy) {
    case Strategy::scan_tile:
      require(s >= 1 && plan.scan.tile_segments >= 1 && plan.scan.tile_segments * s <= run,
              "a run holds its segments");
      require(plan.scan.tile_segments * s % plan.load_width == 0, "runs begin on loads");
      require(lanes_keep_ends(graph, s, plan.load_width) || rows_hold_segments(s, plan.load_width),
              "a lane keeps the end of one segment at most");
      break;
    case Strategy::scan_run:
      require((s >= 1 || target.is_cpu()) && plan.scan.tile_segments >= 1, "a warp owns segments");
      break;
    case Strategy::scan_block:
      if (plan.scan.tile_segments == 0) {
        require(s >= 1 && s <= run * plan.warps && s % plan.load_width == 0,
                "a block holds a segment, which begins on a load");
        break;
      }
      require(s >= 1 && plan.scan.tile_segments * s <= run * plan.warps &&
                  plan.scan.tile_segments * s % plan.load_width == 0,
              "a block holds its segments, which begin on a load");
      require(s % plan.load_width != 0, "segments begin within loads");
      require(lanes_keep_ends(graph, s, plan.load_width),
              "a lane keeps the end of one segment at most");
      require(group_fits(plan, graph, target),
              "shared memory holds the folds of a block's segments");
      break;
    case Strategy::look_ahead:
      require(plan.stages >= 2 && plan.blocks >= 1, "blocks that stay have tiles on their way");
      require(!plan.scan.in_registers || plan.scan.staged_rows == plan.depth,
              "all rows of tiles are staged");
      [[fallthrough]];
    default:
      require(plan.scan.tile >= 1, "tiles hold elements");
      require(s == 0 || plan.scan.heads || s % plan.load_width == 0 ||
                  (begins_in_loads(plan) && s > plan.scan.tile),
              "tiles begin on loads, or segments of several tiles within them");
      require(!plan.scan.in_registers || plan.scan.tile == run * plan.warps,
              "a tile is its warps' runs");
      require(plan.scan.in_registers || plan.warps == 1, "a range is one warp's");
      require(!scans_both_ways(graph) || plan.scan.in_registers,
              "scans of both directions have rows");
      require(target.is_cpu() || plan.scan.in_registers, "what is read twice stays in a cache");
  }
}

bool values_wait(const Graph& graph) { return scans_both_ways(graph) || broadcasts(graph); }

int widest_output(const Graph& graph) {
  int bytes = 1;
  for (const NodeId output : graph.outputs) {
    const Node& node = graph.node(output);
    if (node.level == Level::element) bytes = std::max(bytes, size_of(node.type));
  }
  return bytes;
}

int lines_along(const Graph& graph) {
  int narrowest = -1, bytes = 0;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const Node& node = graph.node(graph.outputs[o]);
    const int size = size_of(node.type);
    if (node.level != Level::element || !rows_are_lines(size)) continue;
    if (narrowest >= 0 && size >= bytes) continue;
    narrowest = static_cast<int>(graph.inputs.size() + o);
    bytes = size;
  }
  return narrowest;
}

bool all_rows_are_lines(const Graph& graph) {
  return std::all_of(graph.outputs.begin(), graph.outputs.end(), [&](NodeId output) {
    const Node& node = graph.node(output);
    return node.level != Level::element || rows_are_lines(size_of(node.type));
  });
}

int widest_of_scan(const Graph& graph) {
  return std::max(widest_input(graph), widest_output(graph));
}

int widest_load(const Target& target, const PlanRequest& request, int element) {
  return std::max(1, std::min(target.vector_bytes, request.base_alignment) / element);
}

int cpu_range_depth(const Graph& graph) {
  const auto gains = [](const Fold& fold) { return fold.tile || fold.quick || fold.place; };
  return std::any_of(graph.folds.begin(), graph.folds.end(), gains) ? kCpuRangeDepth : 1;
}

}  // namespace chainfold::codegen
