#include "chainfold/codegen/plan/hints.hpp"

#include <algorithm>
#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

bool takes_lines(const Plan& plan, const Graph& graph, const Target& target) {
  const std::int64_t line = target.evict_first_bytes;
  const bool has_elements = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                        [](const GraphInput& input) { return !input.is_packed(); });
  if (line == 0 || !has_elements) return false;
  if (needs_order(graph)) return false;  // a lane's loads are one run
  auto all_inputs = [&](auto holds) {
    return std::all_of(graph.inputs.begin(), graph.inputs.end(),
                       [&](const GraphInput& input) { return input.is_packed() || holds(input); });
  };
  const bool wide = all_inputs([&](const GraphInput& input) {
    return std::int64_t{kWarpWidth} * plan.load_width * size_of(input.type) >= 2 * line;
  });
  switch (plan.strategy) {
    case Strategy::parts: return wide;
    case Strategy::rows: return wide && plan.segment >= std::int64_t{kWarpWidth} * plan.load_width;
    case Strategy::columns:
      return wide && plan.columns.phases == 1 && !plan.strided &&
             all_inputs([&](const GraphInput& input) {
               return plan.segment * size_of(input.type) % line == 0;
             });
    default: return false;
  }
}

bool half_vectors_do(const Plan& plan, const Graph& graph, const Target& target) {
  const bool parts = plan.strategy == Strategy::parts;
  if (!target.vector_lanes || graph.folds.size() != 1 ||
      !(parts || plan.strategy == Strategy::rows))
    return false;
  const auto fold = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& node) { return node.kind == NodeKind::fold; });
  const NodeId input = mma_operands(graph, *fold).a;
  if (input == kNoNode) return false;
  const DType type = graph.node(input).type;
  if (is_float(type) && graph.node(fold->operands[0]).type != type) return false;
  switch (size_of(type)) {
    case 4: return parts || plan.segment >= 16;
    case 8:
      return parts || plan.segment % kWarpWidth == 0 ||
             (plan.segment >= 100 && plan.segment % 4 == 0);
    default: return false;
  }
}

bool screens_batches(const Plan& plan, const Graph& graph, const Target& target) {
  if (!target.vector_lanes) return false;
  const bool ranges = has_scans(graph);  // whose folds are merged in order or not
  if (!ranges && needs_order(graph)) return false;
  if (!ranges && plan.strategy != Strategy::rows && plan.strategy != Strategy::parts) return false;
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.place.has_value(); });
}

}  // namespace chainfold::codegen
