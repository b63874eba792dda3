// with_wide_scans: minima and maxima of integers of one or two bytes, scanned as words.
//
// A lane of 32 bits has no narrower operations. Each of a scan's steps would take an element out of
// its word, and most would extend its sign again. As words elements are taken out once and put back
// once.
//
// Before: a graph. After: the same values. Scans by min and max of such integers, and folds that
// share their states, are of i32, and their operands and results are converted. What comes before
// the first element is the narrow type's end, as before.
#include "chainfold/codegen/graph/wide_scans.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/verify.hpp"

namespace chainfold::codegen {

namespace {

/// The fold as words; nothing for other folds.
std::optional<Fold> widened(const Fold& fold) {
  const DType type = fold.result();
  const bool narrow = is_integer(type) && size_of(type) < size_of(DType::i32);
  const bool plain =
      narrow && (fold.name == make_min(type).name || fold.name == make_max(type).name);
  if (!plain) return std::nullopt;
  const bool largest = fold.tile == Op::max;
  Fold wide = largest ? make_max(DType::i32) : make_min(DType::i32);
  const Bits end = evaluate(Op::convert, type, DType::i32, fold.init[0]);
  wide.name += fmt::format(".{}", name_of(type));
  wide.init = {end};
  wide.tile_identity = end;
  return wide;
}

}  // namespace

Graph with_wide_scans(const Graph& graph) {
  std::vector<std::optional<Fold>> wide(graph.folds.size());
  bool any = false;
  for (std::size_t f = 0; f < wide.size(); ++f) {
    if (is_scanned(graph, static_cast<int>(f))) wide[f] = widened(graph.folds[f]);
    any = any || wide[f];
  }
  if (!any) return graph;
  Graph made = graph;
  if (made.written.empty()) made.written = output_expressions(graph);
  made.nodes.clear();
  for (std::size_t f = 0; f < wide.size(); ++f)
    if (wide[f]) made.folds[f] = *wide[f];
  std::vector<NodeId> now;  // one a node of the graph: what stands for it
  // Equal conversions are one node: what shares a fold has the same operands.
  std::map<std::pair<NodeId, DType>, NodeId> conversions;
  const auto add = [&](Node node) {
    const auto next = static_cast<NodeId>(made.nodes.size());
    if (node.kind == NodeKind::compute && node.op == Op::convert) {
      const auto [at, is_new] = conversions.try_emplace({node.operands[0], node.type}, next);
      if (!is_new) return at->second;
    }
    made.nodes.push_back(std::move(node));
    return next;
  };
  const auto convert = [&](NodeId value, DType type) {
    Node node;
    node.kind = NodeKind::compute;
    node.type = type;
    node.op = Op::convert;
    node.level = made.node(value).level;
    node.operands = {value};
    return add(std::move(node));
  };
  for (const Node& from : graph.nodes) {
    Node node = from;
    for (NodeId& operand : node.operands) operand = now[static_cast<std::size_t>(operand)];
    if (node.filter != kNoNode) node.filter = now[static_cast<std::size_t>(node.filter)];
    const bool folds = node.kind == NodeKind::fold || node.kind == NodeKind::scan;
    if (!folds || !wide[static_cast<std::size_t>(node.index)]) {
      now.push_back(add(std::move(node)));
      continue;
    }
    node.operands[0] = convert(node.operands[0], DType::i32);
    node.type = DType::i32;
    now.push_back(convert(add(std::move(node)), from.type));
  }
  for (NodeId& output : made.outputs) output = now[static_cast<std::size_t>(output)];
  verify(made);
  return made;
}

}  // namespace chainfold::codegen
