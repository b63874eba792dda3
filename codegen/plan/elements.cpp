#include "chainfold/codegen/plan/elements.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

namespace {

int widest_array(const Graph& graph) {
  int bytes = widest_input(graph);
  for (const NodeId output : graph.outputs)
    bytes = std::max(bytes, size_of(graph.node(output).type));
  return bytes;
}

/// Elements of a load so that no array's access is wider than the target's widest.
int width_of(const Graph& graph, const Target& target, int widest) {
  return std::min(widest, std::max(1, target.vector_bytes / widest_array(graph)));
}

}  // namespace

bool are_elements(const Target& target, const PlanRequest& request) {
  return request.segment == 1 && !request.strided && !target.vector_lanes;
}

namespace {

/// What of the plan follows from its choice. False where the choice is not legal.
bool derive_elements(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                     const PlanRequest& request, int widest) {
  plan.strategy = Strategy::elements;
  plan.load_width = width_of(graph, target, widest);
  plan.lanes_per_segment = 1;
  plan.depth = choice.depth;
  return are_elements(target, request);
}

constexpr PlanField kElements[] = {
    {"warps", &PlanChoice::warps}, {"depth", &PlanChoice::depth}, {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!derive_elements(plan, choice, site.graph, site.target, site.request, site.widest.aligned))
    return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& /*plan*/, const Graph& /*graph*/) { return {}; }

void verify_own(const Plan& plan, const Graph& graph, const Target& target,
                const RequireRule& require) {
  require(plan.segment == 1 && !plan.strided && plan.lanes_per_segment == 1,
          "elements are segments that lie side by side");
  for (const NodeId output : graph.outputs) {
    const int bytes = plan.load_width * size_of(graph.node(output).type);
    require(plan.load_width == 1 || bytes <= target.vector_bytes, "stores fit the target");
  }
}

}  // namespace

StrategyRow elements_strategy() {
  return {.id = Strategy::elements,
          .name = "elements",
          .serves =
              "folds over segments of one element that lie side by side, of any types and "
              "alignment, on "
              "GPUs: depth is loads of a lane, each of several segments",
          .fields = kElements,
          .make = make,
          .print = print_own,
          .verify = verify_own};
}

}  // namespace chainfold::codegen
