#include "chainfold/codegen/plan/make.hpp"

#include <cstddef>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/columns.hpp"
#include "chainfold/codegen/plan/elements.hpp"
#include "chainfold/codegen/plan/hints.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/place_scan.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/plan/strands.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Rows at once beyond which no target gains: more would only be code.
constexpr int kMostRows = 32;

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
  plan.state_bytes = state_bytes(graph);
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

}  // namespace chainfold::codegen
