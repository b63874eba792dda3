#include "chainfold/codegen/plan/folds.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/hints.hpp"
#include "chainfold/codegen/plan/streams.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

std::optional<Plan> finish_folds(Plan plan, const PlanChoice& choice, const PlanSite& site) {
  const Graph& graph = site.graph;
  const Target& target = site.target;
  const PlanRequest& request = site.request;
  if (choice.hints) {
    plan.hints.evict_first = takes_lines(plan, graph, target);
    plan.hints.half_vectors = half_vectors_do(plan, graph, target);
    plan.hints.streams = streams_of(plan, graph, target);
    plan.hints.screens = screens_batches(plan, graph, target);
    if (request.is_unlimited()) plan.hints.read_ahead = ahead_of(plan, graph, target);
  } else {
    plan.hints.non_temporal_from = 0;
  }
  const bool staged = plan.strategy == Strategy::staged,
             columns = plan.strategy == Strategy::columns;
  const bool path = takes_stretches(plan.strategy);
  const bool across = columns || path || plan.strategy == Strategy::elements;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold || !choice.mma || !request.allow_mma || across) continue;
    const auto f = static_cast<std::size_t>(node.index);
    try_mma(graph, plan, target, node, plan.folds[f]);
  }
  const bool small = plan.shares_quads();
  for (const FoldPlan& how : plan.folds) {
    // A staged tile's last segments may not exist, and anything stands in their place.
    const bool finite = plan.promises.nonfinite == NonFinite::assume_finite && !staged;
    plan.promises.guard = plan.promises.guard || (how.unit != Unit::simt && small && !finite);
  }
  // Merging rounded values is cheaper; whole states where the bound asks for it.
  auto bounded = [&] {
    bool within = true;
    for (std::size_t f = 0; f < plan.folds.size(); ++f) {
      double& bound = plan.folds[f].error_bound_u;
      bound = error_bound(graph, plan, target, f);
      within = within && bound <= allowed_error(graph, target, plan.promises.accuracy,
                                                columns ? 0 : plan.segment, f);
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

std::string print_lanes(const Plan& plan) {
  return fmt::format("  lanes_per_segment {}, rows {}{}{}\n", plan.lanes_per_segment, plan.rows,
                     plan.load_rows_first ? ", all rows loaded first" : "",
                     plan.vector_lanes && plan.rows > 1 ? ", merged by patterns of two" : "");
}

}  // namespace chainfold::codegen
