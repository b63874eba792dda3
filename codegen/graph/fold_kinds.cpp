#include "chainfold/codegen/graph/fold_kinds.hpp"

#include <algorithm>

namespace chainfold::codegen {

bool has_moments(const Graph& graph) {
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.moments; });
}

bool sums_wide(const Fold& fold) {
  return fold.linear && fold.operands[0] == DType::f32 && fold.state[0] == DType::f64;
}

std::vector<DType> carried_fields(const Fold& fold) {
  if (fold.quick) return carried_fields(fold.quick->scans);
  const DType type = fold.operands[0];
  if (fold.moments) {
    const DType real = type == DType::f32 ? DType::f32 : DType::f64;
    return {DType::i64, real, real};
  }
  if (fold.linear && is_float(type)) return {type, type};
  return fold.state;
}

int element_bytes(const Graph& graph) {
  int bytes = 0;
  for (const GraphInput& input : graph.inputs) bytes += size_of(input.type);
  return bytes;
}

std::int64_t state_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Fold& fold : graph.folds)
    for (const DType type : fold.state) bytes += size_of(type);
  return bytes;
}

std::int64_t carried_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Fold& fold : graph.folds)
    for (const DType type : carried_fields(fold)) bytes += size_of(type);
  return bytes;
}

std::vector<DType> scanned_fields(const Fold& fold) {
  return fold.moments ? fold.state : carried_fields(fold);
}

bool is_plain(const Graph& graph) {
  return std::all_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.tile || fold.accumulate; });
}

bool folds_tests(const Graph& graph) {
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.tile && fold.state[0] == DType::boolean; });
}

bool merges_fields(const Fold& fold) {
  return fold.state.size() > 1 && !fold.tile && !fold.moments && !fold.linear;
}

bool merges_fields(const Graph& graph) {
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return merges_fields(fold); });
}

bool folds_inputs(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.kind != NodeKind::fold) return true;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    const Node* of = &graph.node(node.operands[0]);
    while (of->kind == NodeKind::compute && of->op == Op::convert)
      of = &graph.node(of->operands[0]);
    return (fold.tile || fold.accumulate || fold.moments) && node.filter == kNoNode &&
           of->kind == NodeKind::input;
  });
}

bool folds_pairs(const Graph& graph, std::int64_t segment) {
  return segment == 2 && is_plain(graph) && graph.folds.size() == 1 && graph.inputs.size() == 1 &&
         graph.outputs.size() == 1 &&
         size_of(graph.node(graph.outputs[0]).type) == size_of(graph.inputs[0].type);
}

bool is_one_fold(const Graph& graph) {
  return is_plain(graph) && graph.folds.size() == 1 && graph.inputs.size() == 1 &&
         size_of(graph.inputs[0].type) > 1 && folds_inputs(graph);
}

bool adds_doubles(const Graph& graph) {
  return is_one_fold(graph) && graph.folds[0].accumulate && graph.folds[0].result() == DType::f64 &&
         graph.inputs[0].type == DType::f64;
}

}  // namespace chainfold::codegen
