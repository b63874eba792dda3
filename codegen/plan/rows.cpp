#include "chainfold/codegen/plan/rows.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/moments.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

int lanes_of_load(std::int64_t segment, int width) {
  const std::int64_t loads = (segment + width - 1) / width;
  return static_cast<int>(std::min<std::int64_t>(
      kWarpWidth, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(loads)))));
}

std::int64_t loads_of_lanes(std::int64_t segment, int width, int lanes) {
  const std::int64_t step = static_cast<std::int64_t>(lanes) * width;
  return (segment + step - 1) / step;
}

std::int64_t loads_of(std::int64_t segment, int width) {
  return loads_of_lanes(segment, width, kWarpWidth);
}

namespace {
/// Whether boundaries of memory may be peeled to. Bits are loaded from anywhere.
bool may_peel(const Graph& graph) {
  return graph.inputs.size() == 1 && !graph.inputs[0].is_packed();
}
}  // namespace

bool peels_memory(const Plan& plan, const Graph& graph) {
  return plan.edges && !plan.strided && may_peel(graph) && plan.load_width > 1 &&
         plan.load_width * size_of(graph.inputs[0].type) > plan.base_alignment;
}

Widest widest_of(const Graph& graph, const Target& target, const PlanRequest& request,
                 int bytes_at_most) {
  const int full = widest_load(graph, target, bytes_at_most);
  if (target.accesses_anywhere) return {full, full};
  const int aligned = widest_load(graph, target, std::min(request.base_alignment, bytes_at_most));
  const bool peels = may_peel(graph) && !request.strided;
  return {aligned, peels ? full : aligned};
}

std::pair<int, bool> row_width(std::int64_t segment, const Widest& widest, const Target& target) {
  // Where loads may lie anywhere the last one of a segment is masked by elements.
  if (target.accesses_anywhere) return {segment < widest.aligned ? 1 : widest.aligned, false};
  const int width = widest_divisor(segment, widest.aligned);
  // A long segment that begins anywhere is worth a scalar head and tail; a short one is not.
  const bool edges = width < widest.peeled && segment >= 4LL * kWarpWidth * widest.peeled;
  return {edges ? widest.peeled : width, edges};
}

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
  return in <= kShare * out ? 2 * target.non_temporal_bytes * widest / (in + out) : 0;
}

namespace {

/// What of a plan by rows follows from its choice and the widest loads. False where
/// the choice is not legal.
bool derive_rows(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                 const Widest& widest) {
  const std::int64_t s = plan.segment;
  plan.strategy = Strategy::rows;
  std::tie(plan.load_width, plan.edges) = row_width(s, widest, target);
  if (choice.lanes != 0 && (!is_power_of_two(choice.lanes) || choice.lanes > kWarpWidth))
    return false;
  const int most = lanes_of_load(s, plan.load_width);
  plan.lanes_per_segment = choice.lanes > 0 ? std::min(choice.lanes, most) : most;
  const std::int64_t loads = loads_of_lanes(s, plan.load_width, plan.lanes_per_segment);
  // Groups of fewer lanes than a warp have their segment in one batch.
  if (plan.lanes_per_segment < most &&
      (!target.vector_lanes || needs_order(graph) || loads > choice.depth))
    return false;
  plan.depth = static_cast<int>(std::min<std::int64_t>(loads, choice.depth));
  plan.rows = choice.rows;
  if (target.is_cpu()) plan.rows = std::min(plan.rows, plan.lanes_per_segment);
  if (plan.edges || loads > plan.depth) plan.rows = 1;
  plan.load_rows_first = !target.is_cpu();
  plan.vector_lanes = target.vector_lanes;
  plan.mean_loads = mean_loads(graph, target, plan.load_width);
  plan.launches = 1;
  if (plan.segments_per_warp() % kWarpWidth == 0)  // results are whole lines
    plan.hints.non_temporal_from = stream_from(graph, target, s);
  return true;
}

constexpr PlanField kRows[] = {{"warps", &PlanChoice::warps},
                               {"depth", &PlanChoice::depth},
                               {"lanes", &PlanChoice::lanes, false},
                               {"rows", &PlanChoice::rows},
                               {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!derive_rows(plan, choice, site.graph, site.target, site.widest)) return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph& /*graph*/) { return print_lanes(plan); }

void verify_own(const Plan& plan, const Graph& /*graph*/, const Target& /*target*/,
                const RequireRule& require) {
  require(plan.segment >= 1, "rows need the segment size");
  require(plan.lanes_per_segment == kWarpWidth ||
              plan.segment <=
                  static_cast<std::int64_t>(plan.lanes_per_segment) * plan.load_width * plan.depth,
          "a group of fewer lanes than a warp loads its segment in one batch");
  require(!plan.edges || plan.lanes_per_segment == kWarpWidth, "edges need a warp a segment");
}

}  // namespace

StrategyRow rows_strategy() {
  return {
      .id = Strategy::rows,
      .name = "rows",
      .serves =
          "folds over segments of one element and more, of any types, strides and alignment, on "
          "every "
          "target: rows are segments that a group of lanes takes at once, lanes share one (0: as "
          "many "
          "as one load of it has; fewer on CPUs alone, where the segment is one batch of loads and "
          "the fold needs no order), depth is loads of a segment under way; with mma, on GPUs, "
          "sums "
          "and sums of products of cf::f16, cf::bf16, double and 8-bit integers without a filter "
          "are "
          "added up by "
          "tensor cores where loads fill their operands",
      .fields = kRows,
      .make = make,
      .print = print_own,
      .verify = verify_own};
}

}  // namespace chainfold::codegen
