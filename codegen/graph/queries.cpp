#include "chainfold/codegen/graph/queries.hpp"

#include <algorithm>
#include <cstddef>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

bool needs_order(const Graph& graph) {
  return !std::all_of(graph.folds.begin(), graph.folds.end(),
                      [](const Fold& fold) { return fold.commutative; });
}

bool has_quick_folds(const Graph& graph) {
  return std::any_of(graph.folds.begin(), graph.folds.end(),
                     [](const Fold& fold) { return fold.quick != nullptr; });
}

bool has_packed(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [](const GraphInput& input) { return input.is_packed(); });
}

bool has_scans(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.kind == NodeKind::scan; });
}

std::vector<bool> depending_on(const Graph& graph, NodeKind kind) {
  std::vector<bool> depends(graph.nodes.size());
  for (std::size_t id = 0; id < depends.size(); ++id) {
    const Node& node = graph.nodes[id];
    depends[id] = node.kind == kind ||
                  (node.filter != kNoNode && depends[static_cast<std::size_t>(node.filter)]);
    for (const NodeId operand : node.operands)
      depends[id] = depends[id] || depends[static_cast<std::size_t>(operand)];
  }
  return depends;
}

bool share_fold(const Node& a, const Node& b) {
  if (a.kind == NodeKind::fold && b.kind == NodeKind::fold)
    return a.part != b.part && a.operands == b.operands && a.filter == b.filter;
  const bool fold_first = a.kind == NodeKind::fold;
  const Node &fold = fold_first ? a : b, &scan = fold_first ? b : a;
  return fold.kind == NodeKind::fold && scan.kind == NodeKind::scan && !scan.exclusive &&
         !scan.reverse && fold.operands == scan.operands && fold.filter == scan.filter;
}

bool is_scanned(const Graph& graph, int fold) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::scan && node.index == fold;
  });
}

std::vector<std::optional<ScanForm>> scan_forms(const Graph& graph) {
  std::vector<std::optional<ScanForm>> forms(graph.folds.size());
  for (const Node& node : graph.nodes)
    if (node.kind == NodeKind::scan)
      forms[static_cast<std::size_t>(node.index)] = {node.exclusive, node.reverse};
  return forms;
}

std::vector<bool> broadcast_folds(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size()), asked(graph.folds.size());
  for (const NodeId output : graph.outputs) {
    if (graph.node(output).level == Level::element) needed[static_cast<std::size_t>(output)] = true;
  }
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {  // users come behind their operands
    const Node& node = graph.nodes[id];
    if (!needed[id]) continue;
    if (node.kind == NodeKind::fold) asked[static_cast<std::size_t>(node.index)] = true;
    if (node.kind != NodeKind::compute) continue;
    for (const NodeId operand : node.operands) needed[static_cast<std::size_t>(operand)] = true;
  }
  return asked;
}

bool broadcasts(const Graph& graph) {
  const std::vector<bool> asked = broadcast_folds(graph);
  return std::find(asked.begin(), asked.end(), true) != asked.end();
}

namespace {
bool level_reads_extent(const Graph& graph, Level level) {
  const std::vector<bool> extents = depending_on(graph, NodeKind::extent);
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](NodeId output) {
    return graph.node(output).level == level && extents[static_cast<std::size_t>(output)];
  });
}
}  // namespace

bool elements_read_extent(const Graph& graph) { return level_reads_extent(graph, Level::element); }

bool segments_read_extent(const Graph& graph) { return level_reads_extent(graph, Level::segment); }

bool reads_index(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.kind == NodeKind::index; });
}

bool scans_backward(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.reverse; });
}

bool scans_both_ways(const Graph& graph) {
  bool forward = false, reverse = false;
  for (const Node& node : graph.nodes) {
    forward = forward || (node.kind == NodeKind::scan && !node.reverse);
    reverse = reverse || (node.kind == NodeKind::scan && node.reverse);
  }
  return forward && reverse;
}

}  // namespace chainfold::codegen
