// The decisions of segments of one element: how wide a load is, and how many are under way.
#include <algorithm>

#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

namespace {

/// One load a lane of small blocks is what memory likes best where as much is written as read (2
/// GiB of f16 on an H200, of the ceiling: 1.003 by one load a lane of four warps, 0.995 by two,
/// 0.98 by four; f32 1.002, 0.994, 0.98; i8 into i32 1.008, 1.000, 0.985).
constexpr int kLoads = 1, kWarps = 4;

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

PlanChoice elements_choice(const Target& target) {
  PlanChoice choice;
  choice.strategy = Strategy::elements;
  choice.mma = false;
  choice.warps = std::min(kWarps, target.max_warps);
  choice.depth = kLoads;
  choice.bytes = target.vector_bytes;
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
