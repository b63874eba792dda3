#include "chainfold/codegen/choose/rows.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/any.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
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

/// A segment's share of a tile's operations, of `rows` rows of groups of `lanes` lanes.
double cost_of(const Target& target, int lanes, int rows, std::int64_t loads, int register_lanes,
               double merge) {
  const TunedRows& tuned = tuned_for(target).rows;
  const int pieces = std::max(1, register_lanes / lanes);
  const double vectors = static_cast<double>(rows * loads) * (1 + tuned.piece * (pieces - 1));
  const int merges = rows - 1 + ceil_log2(lanes / rows);
  return (vectors + merge * merges) * lanes / rows;
}

/// Whether a fold takes terms of f64, each of which keeps many registers for a while.
bool adds_terms_of_doubles(const Graph& graph) {
  return std::any_of(graph.folds.begin(), graph.folds.end(), [](const Fold& fold) {
    return fold.relative && fold.operands[0] == DType::f64;
  });
}

/// Whether one batch is better than two. A fold of two inputs has half of a lane's loads under way
/// for each, and registers for twice as many.
bool takes_one_batch_of_two(const Graph& graph, const Target& target, int depth,
                            std::int64_t loads) {
  return !target.is_cpu() && graph.inputs.size() == 2 && graph.folds.size() == 1 &&
         graph.folds[0].tile && loads > depth && loads <= 2 * depth;
}

}  // namespace

void choose_depth(PlanChoice& choice, const Graph& graph, const Target& target,
                  std::int64_t segment, int width) {
  const TunedRows& tuned = tuned_for(target).rows;
  const int bytes = widest_input(graph);
  if (target.is_cpu() || !is_one_fold(graph) || width * bytes < target.vector_bytes ||
      segment * bytes < tuned.deep_from)
    return;
  choice.depth = tuned.deep_loads;
  choice.warps = std::min(choice.warps, tuned.deep_warps);
  choice.mma = false;
}

bool choose_edges(PlanChoice& choice, const Graph& graph, const Target& target,
                  std::int64_t segment, int width) {
  const TunedRows& tuned = tuned_for(target).rows;
  const int size = widest_input(graph);
  const bool one = graph.inputs.size() == 1 && graph.folds.size() == 1 && is_plain(graph);
  const bool moments = has_moments(graph);
  if (adds_doubles(graph) && width == 2) {
    const bool is_long = segment >= tuned.long_doubles;
    choice.depth =
        segment < tuned.few_single_loads ? tuned.short_single_loads : tuned.long_single_loads;
    choice.warps = std::min(choice.warps, is_long ? tuned.edge_warps : tuned.warps_of_single_loads);
    choice.mma = choice.mma && !is_long;
    if (segment < tuned.pairs_of_doubles) choice.bytes = size;
    return segment >= tuned.pairs_of_doubles;
  }
  const bool filters = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.kind == NodeKind::fold && node.filter != kNoNode;
  });
  const bool simple = one && !filters && (size == 2 || size == 4);
  const bool light = is_plain(graph) || moments;
  if (light) choice.warps = std::min(choice.warps, tuned.edge_warps);
  choice.depth = std::min(choice.depth, simple  ? tuned.edge_loads_of_one
                                        : light ? tuned.edge_loads
                                                : tuned.edge_loads / 2);
  if (folds_tests(graph)) choice.depth = std::min(choice.depth, tuned.loads_of_tests);
  if (one && size == 2) choice.mma = false;
  const auto padded = [&](int depth) {
    const std::int64_t batch = std::int64_t{kWarpWidth} * width * depth;
    return static_cast<double>((segment - width + batch - 1) / batch * batch);
  };
  const double most = moments ? tuned.most_empty_of_moments : tuned.most_empty;
  if ((moments || (one && size == 1)) && choice.depth > 1 &&
      padded(choice.depth) > most * padded(choice.depth / 2))
    choice.depth /= 2;
  // A loop over what begins on a boundary. Loads that end before it is over are masked.
  const std::int64_t least = segment - 2 * (width - 1);
  if (!folds_inputs(graph) && !moments)
    while (choice.depth > 1 && std::int64_t{kWarpWidth} * width * choice.depth > least)
      choice.depth /= 2;
  return true;
}

void choose_lanes(PlanChoice& choice, const Graph& graph, const Target& target,
                  std::int64_t segment, int width) {
  const TunedRows& tuned = tuned_for(target).rows;
  if (!target.vector_lanes) return;
  const std::int64_t loads = loads_of(segment, width);
  const int tile = tile_loads(graph, width);
  const std::int64_t merged = needs_order(graph) ? tuned.merges_in_order * loads : loads;
  choice.rows = std::min(choice.rows, floor_power_of_two(tile / merged));
  if (needs_order(graph) || loads > choice.depth) return;
  // Elements of fewer bytes become as many words.
  const int register_lanes = kRegisterBytes / std::max(4, widest_input(graph));
  const double merge = has_moments(graph) ? tuned.merge_moments : tuned.merge;
  const int budget = choice.rows;
  std::int64_t most = choice.depth;
  if (has_moments(graph)) {
    if (widest_input(graph) >= 4 && loads > tuned.most_warp_loads_of_moments) return;
    most = std::min<std::int64_t>(most, mean_loads(graph, target, width));
  }
  double least = 0;
  for (int lanes = lanes_of_load(segment, width); lanes * tuned.most_pieces >= register_lanes;
       lanes /= 2) {
    const std::int64_t of_lanes = loads_of_lanes(segment, width, lanes);
    const bool far = reach_of_row(graph, segment, lanes) >= tuned.far_bytes;
    if (choice.lanes > 0 && (of_lanes > most || far)) break;
    const int rows = std::min({budget, lanes, floor_power_of_two(tile / of_lanes)});
    const double cost = cost_of(target, lanes, rows, of_lanes, register_lanes, merge);
    if (choice.lanes == 0 || cost < least) {
      least = cost;
      choice.lanes = lanes;
      choice.rows = rows;
    }
  }
}

PlanChoice rows_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedRows& tuned = tuned_for(target).rows;
  PlanChoice choice = any_choice(graph, target, request);
  auto [width, edges] =
      row_width(request.segment, widest_of(graph, target, request, choice.bytes), target);
  if (edges && !choose_edges(choice, graph, target, request.segment, width)) {
    width = 1;
    edges = false;
  }
  const std::int64_t loads = loads_of(request.segment, width);
  if (has_moments(graph) && !edges && graph.inputs.size() == 1) {
    if (loads <= tuned.most_loads_of_moments)
      choice.depth = std::max(choice.depth, tuned.most_loads_of_moments);
    // Such warps take many registers: blocks of fewer fill a multiprocessor better.
    if (2 * loads > tuned.most_loads_of_moments) choice.warps = std::min(choice.warps, 4);
  }
  if (has_moments(graph))
    choice.depth = std::min(choice.depth, loads_of_moments(graph, target, width));
  if (adds_terms_of_doubles(graph) && !target.is_cpu()) {
    choice.depth = std::min(choice.depth, tuned.loads_of_terms);
    choice.warps = std::min(choice.warps, tuned.edge_warps);
  }
  // One batch of two inputs takes less time than two (docs/tuned-values.md#rows).
  if (!edges && width * widest_input(graph) == target.vector_bytes &&
      takes_one_batch_of_two(graph, target, choice.depth, loads)) {
    choice.depth *= 2;
    choice.warps = std::min(choice.warps, 4);
  }
  // Results of pairs are stored sooner by small blocks (docs/tuned-values.md#rows).
  if (folds_pairs(graph, request.segment)) choice.warps = std::min(choice.warps, 4);
  // Loads that one segment leaves unused go to further rows. These are twice as many where a load
  // is half as wide as it could be.
  const int narrow = 2 * width * widest_input(graph) <= target.vector_bytes ? 2 : 1;
  choice.rows = floor_power_of_two(narrow * target.row_loads / loads);
  if (!edges && !target.is_cpu() && merges_fields(graph) && !needs_order(graph)) {
    int element = element_bytes(graph);
    for (const Fold& fold : graph.folds) element = std::max(element, size_of(fold.operands[0]));
    const std::int64_t bytes = loads * width * element;  // as they are folded
    const int rows = floor_power_of_two(tuned.row_bytes_of_long_merges / bytes);
    choice.rows = std::max(choice.rows, std::min(tuned.rows_of_long_merges, rows));
  }
  if (!edges) {
    choose_depth(choice, graph, target, request.segment, width);
    choose_moments(choice, graph, target, width, loads);
    choose_lanes(choice, graph, target, request.segment, width);
  }
  return choice;
}

}  // namespace chainfold::codegen
