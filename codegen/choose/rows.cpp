#include "chainfold/codegen/choose/rows.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/row_merges.hpp"
#include "chainfold/codegen/plan/strands.hpp"

namespace chainfold::codegen {

namespace {

/// Bytes of a vector register.
constexpr int kRegisterBytes = 64;
/// Registers are not worth to be made of more pieces than this.
constexpr int kMostPieces = 4;
/// What operations take beside an element-wise one: to put another piece into a register, and to
/// merge two lanes of two rows, or, of moments, their states. Of a Zen 4, from cache: f16 of 24, 37
/// and 48 by 8 lanes 41, 40 and 46 GB/s, by 16 33, 38 and 48, by 32 28, 27 and 35.
constexpr double kPiece = 0.3, kMerge = 1, kMergeMoments = 4;
/// Rows of folds in order are merged by themselves, in about as many steps as lanes have levels.
constexpr int kMergesInOrder = 4;
/// Of more loads of a warp moments of 4 and 8 bytes are merged by the more constant weights the
/// more lanes there are (variances of 100 and 128 f32: 37 and 40 GB/s by 16 lanes, 43 and 54 by
/// 32). Those of 2 bytes are converted, which takes most.
constexpr std::int64_t kMostLoadsOfMoments = 2;

/// Bytes over which the segments side by side reach of which a load takes something, from which on
/// prefetchers follow no more (two segments a load from memory: f16 of 220 1.03 of what a loop that
/// only reads gets, of 224 0.9, of 240 and 250 0.6; by 32 lanes 1.09 to 1.16).
constexpr std::int64_t kFarBytes = 880;

/// Warps of a block whose segments have edges, and loads in flight of a lane at most; more of one
/// fold's elements of two and four bytes, which are added one by one: of two bytes tensor cores
/// save nothing here. Sums, minima and maxima on an H200, of the ceiling, with edges loaded first:
/// f16 of 3333, 4500 and 10007 by eight loads on tensor cores 0.956, 0.923 and 0.999,
/// without 1.006, 1.001 and 0.998, by sixteen 1.007, 1.000 and 1.004; maxima of 5001 by eight
/// 0.995, by sixteen 1.004; f32 of 5003 0.996 and 1.004, of 10007 0.984 and 0.992; minima with
/// maxima of 5001 by eight warps of four loads 1.067, by four of eight 1.086; products of two
/// inputs, of 7001 0.988 and 0.996; filtered sums of 5001 by eight loads 1.07, by sixteen less
/// than 1.05.
constexpr int kEdgeWarps = 4, kEdgeLoads = 8, kEdgeLoadsOfOne = 16;
/// Segments of one fold that wide loads read, from so many bytes on: few are folded as soon as
/// their loads are there, which are all under way at once then, and lanes that add have fewer steps
/// behind the last than tensor cores (on an H200, times of what eight warps of sixteen loads on
/// tensor cores take, 2 MiB, 32 MiB and 2 GiB: f16 of 8 KiB 0.90, 0.96 and 0.998, 32 KiB 0.76, 0.93
/// and 0.999, f32 of 8 KiB 0.99, 1.01 and 1.001, 32 KiB 0.84, 0.99 and 0.998, f64 of 8 KiB 0.90,
/// 0.91 and 1.001, 32 KiB 0.65, 0.91 and 0.996).
constexpr std::int64_t kDeepFrom = 4 * 1024;
constexpr int kDeepLoads = 32, kDeepWarps = 4;
/// Sums of f64 that begin anywhere. Of fewer than kLongDoubles elements they are loads of one each,
/// by two warps on tensor cores; longer ones are added by lanes, many loads ahead, by pairs from
/// kPairsOfDoubles on. On an H200, of the ceiling, staged or by four warps' single loads on tensor
/// cores, and so: of 401 0.989 and 1.001, 515 0.993 and 1.003, 777 0.989 and 0.999, 1001 0.995 and
/// 1.002, 1111 0.983 and 0.999, 1555 0.991 and 1.000, 3001 1.002 and 1.007, 4099 1.003 and 1.010,
/// 5003 0.991 and 1.006, 6661 0.991 and 1.007, 8191 0.984 and 1.004.
constexpr std::int64_t kFewSingleLoads = 576, kLongDoubles = 1024, kPairsOfDoubles = 1536;
constexpr int kShortSingleLoads = 8, kLongSingleLoads = 32, kWarpsOfSingleLoads = 2;
/// How many times the loads of a segment, with the empty ones of its last batch, may be those by
/// batches of half as many: of sums of bytes, and of moments, whose every load takes long (bytes of
/// 5001, 16 and 12 loads, by eight 0.84 of the ceiling, by four 0.98, of 10001, 24 and 20, 1.073
/// and 1.065; means and variances of 5001 f16, 24 and 20, 0.92 and 1.03, of 15001, 64 and 60, 0.943
/// and 0.957, of 30011, 120 and 120, 0.979 and 0.960).
constexpr double kMostEmpty = 1.25, kMostEmptyOfMoments = 1.05;

/// The lanes that one load of a segment needs.
int lanes_of(std::int64_t segment, int width) {
  const std::int64_t loads = (segment + width - 1) / width;
  return static_cast<int>(std::min<std::int64_t>(
      Plan::kWarp, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(loads)))));
}

/// Loads of a segment that each of its lanes makes.
std::int64_t loads_of_lanes(std::int64_t segment, int width, int lanes) {
  const std::int64_t step = static_cast<std::int64_t>(lanes) * width;
  return (segment + step - 1) / step;
}

/// A segment's share of a tile's operations, of `rows` rows of groups of `lanes` lanes.
double cost_of(int lanes, int rows, std::int64_t loads, int register_lanes, double merge) {
  const int pieces = std::max(1, register_lanes / lanes);
  const double vectors = static_cast<double>(rows * loads) * (1 + kPiece * (pieces - 1));
  const int merges = rows - 1 + ceil_log2(lanes / rows);
  return (vectors + merge * merges) * lanes / rows;
}

}  // namespace

void place_depth(PlanChoice& choice, const Graph& graph, const Target& target, std::int64_t segment,
                 int width) {
  const int bytes = widest_input(graph);
  if (target.max_warps == 1 || !is_one_fold(graph) || width * bytes < target.vector_bytes ||
      segment * bytes < kDeepFrom)
    return;
  choice.depth = kDeepLoads;
  choice.warps = std::min(choice.warps, kDeepWarps);
  choice.mma = false;
}

std::int64_t loads_of(std::int64_t segment, int width) {
  return loads_of_lanes(segment, width, Plan::kWarp);
}

bool peels_memory(const Plan& plan, const Graph& graph) {
  return plan.edges && !plan.strided && graph.inputs.size() == 1 && plan.load_width > 1 &&
         plan.load_width * size_of(graph.inputs[0].type) > plan.base_alignment;
}

Widest widest_of(const Graph& graph, const Target& target, const PlanRequest& request,
                 int bytes_at_most) {
  const int full = widest_load(graph, target, bytes_at_most);
  if (target.accesses_anywhere) return {full, full};
  const int aligned = widest_load(graph, target, std::min(request.base_alignment, bytes_at_most));
  const bool peels = graph.inputs.size() == 1 && !request.strided;
  return {aligned, peels ? full : aligned};
}

std::pair<int, bool> row_width(std::int64_t segment, const Widest& widest, const Target& target) {
  // Where loads may lie anywhere the last one of a segment is masked by elements.
  if (target.accesses_anywhere) return {segment < widest.aligned ? 1 : widest.aligned, false};
  int width = widest.aligned;
  while (segment % width != 0) width /= 2;
  // A long segment that begins anywhere is worth a scalar head and tail; a short one is not.
  const bool edges = width < widest.peeled && segment >= 4LL * Plan::kWarp * widest.peeled;
  return {edges ? widest.peeled : width, edges};
}

bool place_edges(PlanChoice& choice, const Graph& graph, std::int64_t segment, int width) {
  const int size = widest_input(graph);
  const bool one = graph.inputs.size() == 1 && graph.folds.size() == 1 && is_plain(graph);
  const bool moments = has_moments(graph);
  if (adds_doubles(graph) && width == 2) {
    const bool is_long = segment >= kLongDoubles;
    choice.depth = segment < kFewSingleLoads ? kShortSingleLoads : kLongSingleLoads;
    choice.warps = std::min(choice.warps, is_long ? kEdgeWarps : kWarpsOfSingleLoads);
    choice.mma = choice.mma && !is_long;
    if (segment < kPairsOfDoubles) choice.bytes = size;
    return segment >= kPairsOfDoubles;
  }
  const bool filters = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.kind == NodeKind::fold && node.filter != kNoNode;
  });
  const bool simple = one && !filters && (size == 2 || size == 4);
  const bool light = is_plain(graph) || moments;
  if (light) choice.warps = std::min(choice.warps, kEdgeWarps);
  choice.depth = std::min(choice.depth, simple  ? kEdgeLoadsOfOne
                                        : light ? kEdgeLoads
                                                : kEdgeLoads / 2);
  if (one && size == 2) choice.mma = false;
  const auto padded = [&](int depth) {
    const std::int64_t batch = std::int64_t{Plan::kWarp} * width * depth;
    return static_cast<double>((segment - width + batch - 1) / batch * batch);
  };
  const double most = moments ? kMostEmptyOfMoments : kMostEmpty;
  if ((moments || (one && size == 1)) && choice.depth > 1 &&
      padded(choice.depth) > most * padded(choice.depth / 2))
    choice.depth /= 2;
  return true;
}

/// Bytes of an output from which on it passes the caches by (Plan::stream_from); 0: never. Memory
/// is read before what is stored to it by way of a cache, which matters where results are many, and
/// caches keep none of them where all that is read and stored is twice what they hold. Kernels have
/// a copy of their code for it, which only lengthens compilations where memory waits anyway.
std::int64_t stream_from(const Graph& graph, const Target& target, std::int64_t segment) {
  constexpr std::int64_t kShare = 32;
  if (computes_slowly(graph)) return 0;
  const std::int64_t in = segment * element_bytes(graph);
  std::int64_t out = 0, widest = 0;
  for (const NodeId output : graph.outputs) {
    const std::int64_t bytes = size_of(graph.node(output).type);
    out += bytes;
    widest = std::max(widest, bytes);
  }
  return in <= kShare * out ? 2 * target.stream_bytes * widest / (in + out) : 0;
}

void place_lanes(PlanChoice& choice, const Graph& graph, const Target& target, std::int64_t segment,
                 int width) {
  if (!target.vector_lanes) return;
  const std::int64_t loads = loads_of(segment, width);
  const int tile = tile_loads(graph, width);
  const std::int64_t merged = needs_order(graph) ? kMergesInOrder * loads : loads;
  choice.rows = std::min(choice.rows, floor_power_of_two(tile / merged));
  if (needs_order(graph) || loads > choice.depth) return;
  // Elements of fewer bytes become as many words.
  const int register_lanes = kRegisterBytes / std::max(4, widest_input(graph));
  const double merge = has_moments(graph) ? kMergeMoments : kMerge;
  const int budget = choice.rows;
  std::int64_t most = choice.depth;
  if (has_moments(graph)) {
    if (widest_input(graph) >= 4 && loads > kMostLoadsOfMoments) return;
    most = std::min<std::int64_t>(most, mean_loads(graph, target, width));
  }
  double least = 0;
  for (int lanes = lanes_of(segment, width); lanes * kMostPieces >= register_lanes; lanes /= 2) {
    const std::int64_t of_lanes = loads_of_lanes(segment, width, lanes);
    const bool far = reach_of_row(graph, segment, lanes) >= kFarBytes;
    if (choice.lanes > 0 && (of_lanes > most || far)) break;
    const int rows = std::min({budget, lanes, floor_power_of_two(tile / of_lanes)});
    const double cost = cost_of(lanes, rows, of_lanes, register_lanes, merge);
    if (choice.lanes == 0 || cost < least) {
      least = cost;
      choice.lanes = lanes;
      choice.rows = rows;
    }
  }
}

bool place_rows(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                const Widest& widest) {
  const std::int64_t s = plan.segment;
  plan.strategy = Strategy::rows;
  std::tie(plan.load_width, plan.edges) = row_width(s, widest, target);
  if (choice.lanes != 0 && (!is_power_of_two(choice.lanes) || choice.lanes > Plan::kWarp))
    return false;
  const int most = lanes_of(s, plan.load_width);
  plan.lanes_per_segment = choice.lanes > 0 ? std::min(choice.lanes, most) : most;
  const std::int64_t loads = loads_of_lanes(s, plan.load_width, plan.lanes_per_segment);
  // Groups of fewer lanes than a warp have their segment in one batch.
  if (plan.lanes_per_segment < most &&
      (!target.vector_lanes || needs_order(graph) || loads > choice.depth))
    return false;
  plan.depth = static_cast<int>(std::min<std::int64_t>(loads, choice.depth));
  plan.rows = choice.rows;
  if (target.max_warps == 1) plan.rows = std::min(plan.rows, plan.lanes_per_segment);
  if (plan.edges || loads > plan.depth) plan.rows = 1;
  plan.load_rows_first = target.max_warps > 1;
  plan.vector_lanes = target.vector_lanes;
  plan.mean_loads = mean_loads(graph, target, plan.load_width);
  plan.launches = 1;
  if (plan.segments_per_warp() % Plan::kWarp == 0)  // results are whole lines
    plan.stream_from = stream_from(graph, target, s);
  return true;
}

}  // namespace chainfold::codegen
