#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/verify.hpp"

namespace chainfold::codegen {

namespace {

/// The entry of a fold or scan among the graph's folds: a new one, unless a node shares it.
int entry_of(const Node& node, const Fold& fold, Graph& graph) {
  for (const Node& other : graph.nodes) {
    if (share_fold(node, other) &&
        graph.folds[static_cast<std::size_t>(other.index)].name == fold.name)
      return other.index;
  }
  graph.folds.push_back(fold);
  return static_cast<int>(graph.folds.size()) - 1;
}

}  // namespace

/// Numbers nodes, inputs, parameters, literals and folds in the order in which a walk from the
/// outputs meets them. What was written in another order, or in vain, leaves no trace.
Graph GraphBuilder::finish(std::vector<NodeId> outputs, Partition partition, NodeId condition) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (level(outputs[i]) != Level::element || depends(outputs[i], NodeKind::scan)) continue;
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("output {} has a value for each element but neither folds nor scans; fold it, "
                    "e.g. cf::sum(x), or scan it, e.g. cf::inclusive_sum(x)",
                    i));
  }
  for (const NodeId output : outputs) {
    if (!depends(output, NodeKind::lag)) continue;
    throw UserError(ErrorCode::unsupported,
                    "cf::lag stands in the condition of cf::heads alone so far; make what lies "
                    "before an input of its own");
  }
  if (condition != kNoNode)
    for (const NodeKind kind : {NodeKind::fold, NodeKind::scan, NodeKind::extent, NodeKind::index})
      if (depends(condition, kind))
        throw UserError(ErrorCode::unsupported,
                        "the condition of cf::heads is computed from inputs and parameters, and "
                        "from elements before by cf::lag, not from folds, scans or positions");
  outputs = narrow_sums(single_results(outputs));
  Graph out;
  std::vector<NodeId> renamed(graph_.nodes.size(), kNoNode);
  std::vector<int> input_at(graph_.inputs.size(), -1), param_at(graph_.params.size(), -1);
  auto take = [](int index, std::vector<int>& at, const auto& from, auto& to) {
    int& place = at[static_cast<std::size_t>(index)];
    if (place < 0) {
      place = static_cast<int>(to.size());
      to.push_back(from[static_cast<std::size_t>(index)]);
    }
    return place;
  };
  if (partition.size_param >= 0) {
    partition.size_param = take(partition.size_param, param_at, graph_.params, out.params);
  }
  struct Visit {
    NodeId id;
    std::size_t next;
  };
  std::vector<Visit> stack;  // no recursion: expressions may be deep
  const auto copy_from = [&](NodeId root, std::vector<Node>& nodes) {
    stack.push_back({root, 0});
    while (!stack.empty()) {
      Visit& visit = stack.back();
      const auto id = static_cast<std::size_t>(visit.id);
      const Node& node = graph_.nodes[id];
      const std::size_t children = node.operands.size() + (node.filter != kNoNode ? 1 : 0);
      if (renamed[id] != kNoNode) {
        stack.pop_back();
        continue;
      }
      if (visit.next < children) {
        const std::size_t child = visit.next++;
        stack.push_back({child < node.operands.size() ? node.operands[child] : node.filter, 0});
        continue;
      }
      Node copy = node;
      for (NodeId& operand : copy.operands) operand = renamed[static_cast<std::size_t>(operand)];
      if (copy.filter != kNoNode) copy.filter = renamed[static_cast<std::size_t>(copy.filter)];
      switch (copy.kind) {
        case NodeKind::input:
          copy.index = take(copy.index, input_at, graph_.inputs, out.inputs);
          break;
        case NodeKind::param:
          copy.index = take(copy.index, param_at, graph_.params, out.params);
          break;
        case NodeKind::literal:
          out.literals.push_back(graph_.literals[static_cast<std::size_t>(copy.index)]);
          copy.index = static_cast<int>(out.literals.size()) - 1;
          break;
        case NodeKind::fold:
        case NodeKind::scan:
          copy.index = entry_of(copy, graph_.folds[static_cast<std::size_t>(copy.index)], out);
          break;
        case NodeKind::constant:
        case NodeKind::compute:
        case NodeKind::extent:
        case NodeKind::index:
        case NodeKind::lag:
        case NodeKind::field: break;
      }
      renamed[id] = static_cast<NodeId>(nodes.size());
      nodes.push_back(std::move(copy));
      stack.pop_back();
    }
  };
  for (const NodeId output : outputs) {
    copy_from(output, out.nodes);
    out.outputs.push_back(renamed[static_cast<std::size_t>(output)]);
  }
  if (condition != kNoNode) {
    renamed.assign(graph_.nodes.size(), kNoNode);
    copy_from(condition, partition.heads);
  }
  out.partition = partition;
  verify(out);
  return out;
}

}  // namespace chainfold::codegen
