// choose_plan: the default plan, by rules that hold without measuring.
#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/choose/parts.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strands.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Rows at once beyond which no target gains: more would only be code.
constexpr int kMostRows = 32;
/// Loads of a segment that are held at once, because moments then need no merges.
constexpr int kMostLoadsOfMoments = 16;

/// Loads of one input that a lane issues before their first use. Where each feeds several folds, or
/// comes with loads of other inputs, fewer do: their code would grow without keeping more bytes in
/// flight.
int choose_batch(const Graph& graph, const Target& target) {
  int halves = 0;  // folds that merge tiles are short
  // A merge an element is long. Moments merge whole batches, but keep them in registers meanwhile.
  const bool many_registers = target.max_warps > 1;
  for (const Fold& fold : graph.folds) {
    const bool is_short = fold.tile || fold.accumulate;
    const int folds = is_short || (fold.moments && many_registers) ? 1 : fold.moments ? 3 : 4;
    halves += is_short && many_registers ? folds : 2 * folds;
  }
  const int shares = std::max({1, halves / 2, static_cast<int>(graph.inputs.size())});
  const int batch = std::max(
      target.min_loads_in_flight,
      static_cast<int>(std::bit_floor(static_cast<unsigned>(target.loads_in_flight / shares))));
  if (!target.vector_lanes) return batch;
  return std::min(batch, tile_loads(graph, widest_load(graph, target, load_bytes(graph, target))));
}

/// Whether one batch is better than two: a fold of two inputs has half of a lane's loads under way
/// for each, and registers for twice as many.
bool takes_one_batch_of_two(const Graph& graph, const Target& target, int depth,
                            std::int64_t loads) {
  return target.max_warps > 1 && graph.inputs.size() == 2 && graph.folds.size() == 1 &&
         graph.folds[0].tile && loads > depth && loads <= 2 * depth;
}

/// Whether moments of the same values are asked for: their sum is computed on the way to their
/// mean.
bool comes_with_moments(const Graph& graph, const Node& sum) {
  return is_short(graph, sum.operands[0]) &&
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
           return node.kind == NodeKind::fold && node.operands == sum.operands &&
                  node.filter == sum.filter &&
                  graph.folds[static_cast<std::size_t>(node.index)].moments;
         });
}

bool try_mma(const Graph& graph, const Plan& plan, const Target& target, const Node& node,
             FoldPlan& how) {
  const MmaOperands data = mma_operands(graph, node);
  if (data.a == kNoNode || !target.has_mma || plan.straddle) return false;
  if (comes_with_moments(graph, node)) return false;
  const DType type = graph.node(data.a).type;
  const int index = find_mma(type, target.arch);
  if (index < 0 || type == DType::f32) return false;  // f32 would have to be split in three
  const MmaRow& row = mma_table()[static_cast<std::size_t>(index)];
  // A sum that is asked for in a wider float would lose what the accumulator cannot hold.
  const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
  if (is_float(row.accumulator) && row.accumulator != fold.result()) return false;
  // Its four fused steps cost more than the few additions of a short segment, and more than memory
  // takes where all warps of a block fold a long one.
  if (type == DType::f64 && plan.segment > 0 && plan.segment < 16) return false;
  if (type == DType::f64 && plan.strategy == Strategy::parts) return false;
  const bool small = plan.shares_quads();
  if (plan.load_width % row.elements(Operand::b) != 0) return false;
  if (data.b != kNoNode && small) return false;
  if (small && plan.segment != static_cast<std::int64_t>(plan.lanes_per_segment) * plan.load_width)
    return false;
  how.unit = data.b == kNoNode ? Unit::mma_ones : Unit::mma_diagonal;
  how.mma_row = index;
  return true;
}

/// Whether somebody reads more of a sum than its rounded value, and that has more digits than
/// additions of rounded values keep of equal elements: f16 have 11, an f32 24.
bool asks_for_digits(const Graph& graph, const Plan& plan) {
  constexpr std::int64_t kKept = std::int64_t{1} << 13;
  if (plan.strategy != Strategy::parts && plan.segment <= kKept) return false;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.part != 0; });
}

/// The proven error in units of the fold's rounding unit times the sum of absolute values: what the
/// matrix instruction gives away, one unit a level of plain additions, two for the roundings of
/// what goes into a compensated state and of what comes out.
double error_bound(const Graph& graph, const Plan& plan, const Target& target, std::size_t fold) {
  const Fold& f = graph.folds[fold];
  if (!is_float(f.result()) || !f.linear) return 0;
  if (plan.strategy == Strategy::columns) {  // a batch of loads, then states
    return 2 + (plan.load_rows_first ? ceil_log2(plan.depth) : plan.depth / 2);
  }
  if (plan.strategy == Strategy::elements) return 0;  // nothing is added
  const FoldPlan& how = plan.folds[fold];
  double bound = 0;
  int lanes = plan.lanes_per_segment;
  const std::int64_t step = static_cast<std::int64_t>(Plan::kWarp) * plan.load_width;
  // States of loops, or as many further levels: what has no loop is two batches and a rest at most.
  static_assert(Plan::kMostBatches <= 2);
  bool states = plan.strategy == Strategy::parts || plan.edges || plan.segment > step * plan.depth;
  if (how.unit == Unit::simt) {
    bound += ceil_log2(static_cast<std::int64_t>(plan.load_width) * plan.depth);
  } else {
    const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
    const int steps = plan.load_width / row.elements(Operand::b);
    const double one =
        mma_error_bound(row, target.arch) * (f.result() == DType::f64 ? 0x1p29 : 1.0);
    const bool chained = row.rounding != MmaRounding::toward_zero;
    bound += chained ? one * steps : one + ceil_log2(steps);
    states = states || (!chained && plan.depth > 1);
    if (chained) bound += ceil_log2(plan.depth);
    lanes = std::max(1, lanes / 4);  // the quads' other lanes add exact zeros
  }
  if (states) bound += 2;
  if (!plan.combine_states) bound += ceil_log2(lanes);
  return bound;
}

double allowed_error(const Graph& graph, const Target& target, Accuracy accuracy,
                     std::int64_t segment, std::size_t fold) {
  if (graph.folds[fold].result() ==
      DType::f64) {  // 4 log2(n) u; n up to 2^40 where it is not known
    return 4.0 * (segment == 0 ? 40 : std::max(1, ceil_log2(segment)));
  }
  if (accuracy == Accuracy::fast || accuracy == Accuracy::as_published) return 64;
  return target.arch == 0 || target.arch >= 90 ? 16 : 32;
}

void check_request(const PlanRequest& request) {
  if (request.accuracy == Accuracy::exact || request.accuracy == Accuracy::reproducible) {
    throw UserError(ErrorCode::unsupported,
                    "accuracy 'exact' and 'reproducible' are not supported yet; use "
                    "Accuracy::accurate (the default)",
                    "accuracy");
  }
  if (request.determinism == Determinism::gpu_to_gpu) {
    throw UserError(
        ErrorCode::unsupported,
        "determinism 'gpu_to_gpu' is not supported yet; use Determinism::run_to_run (the default)",
        "determinism");
  }
}

}  // namespace

PlanChoice any_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  PlanChoice choice;
  choice.warps = std::min(8, target.max_warps);
  choice.mma = target.has_mma && request.allow_mma;
  choice.bytes = load_bytes(graph, target);
  choice.depth = choose_batch(graph, target);
  return choice;
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

PlanChoice default_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (has_scans(graph)) return scan_choice(graph, target, request);
  if (has_columns(graph)) return columns_choice(graph, target, request);
  if (are_elements(target, request)) return elements_choice(target);
  if (takes_parts(graph, target, request)) return parts_choice(graph, target, request);
  if (!request.strided && gains_from_stages(graph, target, request)) {
    if (const std::optional<PlanChoice> staged = staged_choice(graph, target, request))
      return *staged;
  }
  return rows_choice(graph, target, request);
}

std::optional<Plan> make_plan(const Graph& graph, const Target& target, const PlanRequest& request,
                              const PlanChoice& choice) {
  check_request(request);
  const bool parts = choice.strategy == Strategy::parts;
  const bool staged = choice.strategy == Strategy::staged;
  const bool columns = choice.strategy == Strategy::columns;
  const bool scan = is_scan(choice.strategy);
  if (columns != has_columns(graph) || (staged && request.strided)) return std::nullopt;
  const bool scan_of_papers = is_published_scan(choice.strategy);
  if ((scan || scan_of_papers) != has_scans(graph)) return std::nullopt;
  if (has_scans(graph) && request.strided) return std::nullopt;
  const bool from_papers = is_published(choice.strategy);
  if (!parts && !from_papers && !has_scans(graph) && request.segment < 1) return std::nullopt;
  const bool any_warps = choice.strategy == Strategy::scan_block && choice.warps > 0;
  if (!any_warps && !is_power_of_two(choice.warps)) return {};
  if (choice.warps > target.max_warps || !is_power_of_two(choice.rows)) return {};
  if (!staged && !scan && (!is_power_of_two(choice.depth) || choice.depth > kDeepest)) return {};
  if (scan && choice.depth < 1) return {};
  if (choice.rows > kMostRows) return {};
  if ((parts || columns) && (choice.parts < 1 || choice.parts > kMostParts)) return {};
  if ((columns || scan) && choice.blocks > target.resident_warps) return {};
  if (choice.mma && !target.has_mma) return {};
  Plan plan;
  plan.segment = request.segment;
  plan.accuracy = request.accuracy;
  plan.nonfinite = request.nonfinite;
  plan.determinism = request.determinism;
  plan.base_alignment = request.base_alignment;
  plan.strided = request.strided;
  plan.warps = choice.warps;
  plan.folds.resize(graph.folds.size());
  for (const Fold& fold : graph.folds) {
    for (DType type : fold.state) plan.state_bytes += size_of(type);
  }
  const Widest widest = widest_of(graph, target, request, choice.bytes);
  if (scan) {
    std::vector<double> allowed;
    for (std::size_t f = 0; f < plan.folds.size(); ++f)
      allowed.push_back(allowed_error(graph, target, plan.accuracy, plan.segment, f));
    return make_scan_plan(plan, choice, graph, target, request, allowed);
  }
  switch (choice.strategy) {
    case Strategy::rows:
      if (!place_rows(plan, choice, graph, target, widest)) return std::nullopt;
      break;
    case Strategy::elements:
      if (!place_elements(plan, choice, graph, target, request, widest.aligned))
        return std::nullopt;
      break;
    case Strategy::parts:
      place_parts(plan, choice, graph, target, widest);
      if (plan.cluster > 0 && !cluster_serves(plan, target)) return std::nullopt;
      break;
    case Strategy::staged:
      if (!place_staged(plan, choice, graph, target, widest.aligned)) return std::nullopt;
      break;
    case Strategy::columns:
      if (!place_columns(plan, choice, graph, target, widest.aligned)) return std::nullopt;
      break;
    default:
      if (!choice.mma || !request.allow_mma) return std::nullopt;
      if (!(scan_of_papers ? place_published_scan(plan, choice, graph, target, widest.aligned)
                           : place_published(plan, choice, graph, target, widest.aligned)))
        return std::nullopt;
      if (plan.accuracy == Accuracy::as_published) return plan;
      if (rounds_sums(plan) || plan.folds[0].error_bound_u >
                                   allowed_error(graph, target, plan.accuracy, plan.segment, 0))
        return std::nullopt;
      return plan;
  }
  plan.takes_lines = takes_lines(plan, graph, target);
  plan.half_vectors = half_vectors_do(plan, graph, target);
  plan.strands = strands_of(plan, graph, target);
  if (request.most_elements == 0) plan.read_ahead = ahead_of(plan, graph, target);
  const bool across = columns || plan.strategy == Strategy::elements;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold || !choice.mma || !request.allow_mma || across) continue;
    const auto f = static_cast<std::size_t>(node.index);
    try_mma(graph, plan, target, node, plan.folds[f]);
  }
  const bool small = plan.shares_quads();
  for (const FoldPlan& how : plan.folds) {
    // Staged, a tile's last segments may be none at all, and anything stands in their place.
    const bool finite = plan.nonfinite == NonFinite::assume_finite && !staged;
    plan.guard = plan.guard || (how.unit != Unit::simt && small && !finite);
  }
  // Merging rounded values is cheaper; whole states where the bound asks for it.
  auto bounded = [&] {
    bool within = true;
    for (std::size_t f = 0; f < plan.folds.size(); ++f) {
      double& bound = plan.folds[f].error_bound_u;
      bound = error_bound(graph, plan, target, f);
      within = within &&
               bound <= allowed_error(graph, target, plan.accuracy, columns ? 0 : plan.segment, f);
    }
    return within;
  };
  if (asks_for_digits(graph, plan)) plan.combine_states = true;
  if (!bounded()) {
    plan.combine_states = true;
    if (!bounded()) return std::nullopt;
  }
  return plan;
}

Plan choose_plan(const Graph& graph, const Target& target, const PlanRequest& request) {
  std::optional<Plan> plan =
      make_plan(graph, target, request, default_choice(graph, target, request));
  if (!plan) throw InternalError("the default plan is not legal", print(graph));
  return *std::move(plan);
}

}  // namespace chainfold::codegen
