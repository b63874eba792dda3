#include "chainfold/codegen/choose/rows.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/any.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/moments.hpp"
#include "chainfold/codegen/plan/row_merges.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/target/target.hpp"

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

/// Loads of a segment that are held at once, because moments then need no merges.
constexpr int kMostLoadsOfMoments = 16;
/// Of more loads of a warp moments of 4 and 8 bytes are merged by the more constant weights the
/// more lanes there are (variances of 100 and 128 f32: 37 and 40 GB/s by 16 lanes, 43 and 54 by
/// 32). Those of 2 bytes are converted, which takes most.
constexpr std::int64_t kMostWarpLoadsOfMoments = 2;

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

/// A segment's share of a tile's operations, of `rows` rows of groups of `lanes` lanes.
double cost_of(int lanes, int rows, std::int64_t loads, int register_lanes, double merge) {
  const int pieces = std::max(1, register_lanes / lanes);
  const double vectors = static_cast<double>(rows * loads) * (1 + kPiece * (pieces - 1));
  const int merges = rows - 1 + ceil_log2(lanes / rows);
  return (vectors + merge * merges) * lanes / rows;
}

/// Whether one batch is better than two: a fold of two inputs has half of a lane's loads under way
/// for each, and registers for twice as many.
bool takes_one_batch_of_two(const Graph& graph, const Target& target, int depth,
                            std::int64_t loads) {
  return target.max_warps > 1 && graph.inputs.size() == 2 && graph.folds.size() == 1 &&
         graph.folds[0].tile && loads > depth && loads <= 2 * depth;
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
    const std::int64_t batch = std::int64_t{kWarpWidth} * width * depth;
    return static_cast<double>((segment - width + batch - 1) / batch * batch);
  };
  const double most = moments ? kMostEmptyOfMoments : kMostEmpty;
  if ((moments || (one && size == 1)) && choice.depth > 1 &&
      padded(choice.depth) > most * padded(choice.depth / 2))
    choice.depth /= 2;
  return true;
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
    if (widest_input(graph) >= 4 && loads > kMostWarpLoadsOfMoments) return;
    most = std::min<std::int64_t>(most, mean_loads(graph, target, width));
  }
  double least = 0;
  for (int lanes = lanes_of_load(segment, width); lanes * kMostPieces >= register_lanes;
       lanes /= 2) {
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

PlanChoice rows_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  PlanChoice choice = any_choice(graph, target, request);
  auto [width, edges] =
      row_width(request.segment, widest_of(graph, target, request, choice.bytes), target);
  if (edges && !place_edges(choice, graph, request.segment, width)) {
    width = 1;
    edges = false;
  }
  const std::int64_t loads = loads_of(request.segment, width);
  if (has_moments(graph) && !edges && graph.inputs.size() == 1) {
    if (loads <= kMostLoadsOfMoments) choice.depth = std::max(choice.depth, kMostLoadsOfMoments);
    // Such warps take many registers: blocks of fewer fill a multiprocessor better.
    if (2 * loads > kMostLoadsOfMoments) choice.warps = std::min(choice.warps, 4);
  }
  // Of 4096 f16 of two inputs 0.933 ms instead of 0.950 (an H200, 2^30 in all; of 16384, which take
  // several batches anyway, 0.935 and 0.936).
  if (!edges && width * widest_input(graph) == target.vector_bytes &&
      takes_one_batch_of_two(graph, target, choice.depth, loads)) {
    choice.depth *= 2;
    choice.warps = std::min(choice.warps, 4);
  }
  // Results of pairs are stored sooner by small blocks (2^30 bf16 on an H200 0.987 and 1.009).
  if (folds_pairs(graph, request.segment)) choice.warps = std::min(choice.warps, 4);
  // Loads that one segment leaves unused go to further rows; twice as many of them where a load is
  // half as wide as it could be.
  const int narrow = 2 * width * widest_input(graph) <= target.vector_bytes ? 2 : 1;
  choice.rows = floor_power_of_two(narrow * target.row_loads / loads);
  if (!edges) {
    place_depth(choice, graph, target, request.segment, width);
    place_moments(choice, graph, target, width, loads);
    place_lanes(choice, graph, target, request.segment, width);
  }
  return choice;
}

}  // namespace chainfold::codegen
