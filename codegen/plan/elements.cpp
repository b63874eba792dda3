#include "chainfold/codegen/plan/elements.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"

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

bool place_elements(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                    const PlanRequest& request, int widest) {
  plan.strategy = Strategy::elements;
  plan.load_width = width_of(graph, target, widest);
  plan.lanes_per_segment = 1;
  plan.depth = choice.depth;
  return are_elements(target, request);
}

}  // namespace chainfold::codegen
