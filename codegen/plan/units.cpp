#include "chainfold/codegen/plan/units.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Whether moments of the same values are asked for: their sum is computed on the way to their
/// mean.
bool comes_with_moments(const Graph& graph, const Node& sum) {
  return is_short(graph, sum.operands[0]) &&
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
           return node.kind == NodeKind::fold && node.operands == sum.operands &&
                  node.filter == sum.filter &&
                  graph.folds[static_cast<std::size_t>(node.index)].moments;
         });
}

/// The input behind conversions that keep its value, or kNoNode.
NodeId input_behind(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind == NodeKind::input) return id;
  if (node.kind != NodeKind::compute || node.op != Op::convert) return kNoNode;
  const NodeId inner = input_behind(graph, node.operands[0]);
  if (inner == kNoNode) return kNoNode;
  const DType from = graph.node(node.operands[0]).type;
  const bool keeps = is_float(from) == is_float(node.type) && widens(from, node.type);
  return keeps ? inner : kNoNode;
}

}  // namespace

bool try_mma(const Graph& graph, const Plan& plan, const Target& target, const Node& node,
             FoldPlan& how) {
  const MmaOperands data = mma_operands(graph, node);
  if (data.a == kNoNode || !target.has_mma || plan.staged.straddle) return false;
  if (comes_with_moments(graph, node)) return false;
  const DType type = graph.node(data.a).type;
  const int index = find_mma(type, target.arch);
  if (index < 0 || type == DType::f32) return false;  // f32 would have to be split in three
  const MmaRow& row = mma_table()[static_cast<std::size_t>(index)];
  // A sum that is asked for in a wider float would lose what the accumulator cannot hold.
  const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
  if (is_float(row.accumulator) && row.accumulator != fold.result()) return false;
  // The four fused steps of f64's instruction cost more than the few additions of a short segment.
  // Where all warps of a block fold a long one, they cost more than memory takes.
  if (type == DType::f64 && plan.segment > 0 && plan.segment < 16) return false;
  if (type == DType::f64 && plan.strategy == Strategy::parts) return false;
  const bool small = plan.shares_quads();
  if (plan.load_width % row.elements(Operand::b) != 0) return false;
  if (data.b != kNoNode && small) return false;
  if (small && plan.segment != static_cast<std::int64_t>(plan.lanes_per_segment) * plan.load_width)
    return false;
  how.unit = data.b == kNoNode ? Unit::mma_ones : Unit::mma_diagonal;
  how.mma_row = index;
  return true;
}

MmaOperands mma_operands(const Graph& graph, const Node& fold) {
  const Fold& f = graph.folds[static_cast<std::size_t>(fold.index)];
  if (!f.linear || fold.filter != kNoNode) return {};
  const NodeId operand = fold.operands[0];
  if (const NodeId a = input_behind(graph, operand); a != kNoNode) return {.a = a};
  // A product: products of the element types are exact in the accumulator. So widening before or
  // after the multiplication is the same as long as it does not wrap.
  NodeId product = operand;
  while (graph.node(product).kind == NodeKind::compute && graph.node(product).op == Op::convert) {
    const NodeId inner = graph.node(product).operands[0];
    const DType from = graph.node(inner).type;
    if (!is_integer(from) || !is_integer(graph.node(product).type) ||
        !widens(from, graph.node(product).type))
      return {};
    product = inner;
  }
  const Node& node = graph.node(product);
  if (node.kind != NodeKind::compute || node.op != Op::mul) return {};
  const NodeId a = input_behind(graph, node.operands[0]), b = input_behind(graph, node.operands[1]);
  if (a == kNoNode || b == kNoNode || graph.node(a).type != graph.node(b).type) return {};
  return {.a = a, .b = b};
}

bool is_short(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.kind != NodeKind::compute || node.op != Op::convert) return false;
  const DType from = graph.node(node.operands[0]).type;
  return size_of(from) <= 2 && from != DType::bf16;
}

}  // namespace chainfold::codegen
