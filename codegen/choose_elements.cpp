// The decisions of segments of one element: how wide a load is, and how many are under way.
#include <algorithm>

#include "chainfold/codegen/plan_space.hpp"

namespace chainfold::codegen {

namespace {

/// Loads and stores of a lane that keep a GPU's memory busy, in bytes of its widest array.
constexpr int kBytesUnderWay = 64;

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

PlanChoice elements_choice(const Graph& graph, const Target& target) {
  PlanChoice choice;
  choice.strategy = Strategy::elements;
  choice.mma = false;
  choice.warps = std::min(8, target.max_warps);
  choice.bytes = target.vector_bytes;
  const int width = width_of(graph, target, widest_load(graph, target, choice.bytes));
  choice.depth = std::max(1, kBytesUnderWay / (width * widest_array(graph)));
  return choice;
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
