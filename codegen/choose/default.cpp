// choose_plan: the default plan, by rules that hold without measuring.
#include "chainfold/codegen/choose/default.hpp"

#include <optional>
#include <utility>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/columns.hpp"
#include "chainfold/codegen/choose/elements.hpp"
#include "chainfold/codegen/choose/head_tiles.hpp"
#include "chainfold/codegen/choose/merge_path.hpp"
#include "chainfold/codegen/choose/parts.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/choose/scan.hpp"
#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/elements.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

PlanChoice default_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (is_ragged(graph)) {
    const std::optional<PlanChoice> heads = head_tiles_choice(graph, target, request);
    return heads ? *heads : merge_path_choice(graph, target, request);
  }
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

Plan choose_plan(const Graph& graph, const Target& target, const PlanRequest& request) {
  std::optional<Plan> plan =
      make_plan(graph, target, request, default_choice(graph, target, request));
  if (!plan) throw InternalError("the default plan is not legal", print(graph));
  return *std::move(plan);
}

}  // namespace chainfold::codegen
