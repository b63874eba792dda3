#include "chainfold/codegen/choose/alignment.hpp"

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/rows.hpp"
#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

PlanChoice choice_for_alignment(const Graph& graph, const Target& target,
                                const PlanRequest& request, const PlanChoice& choice) {
  if (request.base_alignment >= target.vector_bytes) return choice;
  // A scan's run of narrow loads may be too short for a segment, or for a warp to be worth it.
  const auto plan = make_plan(graph, target, request, choice);
  if (choice.strategy == Strategy::scan_tile || !plan)
    return default_choice(graph, target, request);
  if (choice.strategy != Strategy::rows) return choice;
  if (gains_from_stages(graph, target, request)) {
    if (const auto staged = staged_choice(graph, target, request)) return *staged;
  }
  // Rows that need edges only here: what serves them best is another choice.
  PlanRequest aligned = request;
  aligned.base_alignment = target.vector_bytes;
  const auto without = make_plan(graph, target, aligned, choice);
  const bool edges = plan->edges && without && !without->edges;
  // So are narrower loads of a GPU's rows with gaps, which have no edges.
  const bool narrow =
      request.strided && !target.is_cpu() && without && plan->load_width < without->load_width;
  return edges || narrow ? rows_choice(graph, target, request) : choice;
}

}  // namespace chainfold::codegen
