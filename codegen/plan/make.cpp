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
#include "chainfold/codegen/plan/derive_scan.hpp"
#include "chainfold/codegen/plan/elements.hpp"
#include "chainfold/codegen/plan/hints.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/streams.hpp"
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
  const bool path = takes_stretches(choice.strategy);
  const bool by_bounds = path || choice.strategy == Strategy::padded;
  if (by_bounds != is_ragged(graph) || (by_bounds && request.strided)) return std::nullopt;
  if (columns != has_columns(graph) || (staged && request.strided)) return std::nullopt;
  const bool scan_of_papers = is_published_scan(choice.strategy);
  if (!path && (scan || scan_of_papers) != has_scans(graph)) return std::nullopt;
  if (has_scans(graph) && request.strided) return std::nullopt;
  const bool from_papers = is_published(choice.strategy);
  if (!parts && !path && !from_papers && !has_scans(graph) && request.segment < 1)
    return std::nullopt;
  const bool any_warps = choice.strategy == Strategy::scan_block && choice.warps > 0;
  if (!any_warps && !is_power_of_two(choice.warps)) return {};
  if (choice.warps > target.max_warps || !is_power_of_two(choice.rows)) return {};
  if (!staged && !scan && (!is_power_of_two(choice.depth) || choice.depth > kDeepest)) return {};
  if (scan && choice.depth < 1) return {};
  if (choice.rows > kMostRows) return {};
  if ((parts || columns) && (choice.parts < 1 || choice.parts > kMostParts)) return {};
  if (path && (choice.parts < 1 || choice.parts > kMostStretches)) return {};
  if ((columns || scan) && choice.occupancy > target.resident_warps) return {};
  if (choice.mma && !target.has_mma) return {};
  Plan plan;
  plan.segment = request.segment;
  plan.promises.accuracy = request.accuracy;
  plan.promises.nonfinite = request.nonfinite;
  plan.promises.determinism = request.determinism;
  plan.base_alignment = request.base_alignment;
  plan.strided = request.strided;
  plan.warps = choice.warps;
  plan.folds.resize(graph.folds.size());
  plan.state_bytes = state_bytes(graph);
  return row_of(choice.strategy)
      .make(plan, choice,
            {graph, target, request, widest_of(graph, target, request, choice.bytes)});
}

}  // namespace chainfold::codegen
