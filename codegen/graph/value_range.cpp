#include "chainfold/codegen/graph/value_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chainfold::codegen {

namespace {

/// Elements that a sum may have: 2^63.
constexpr int kCountExponent = 63;

/// Of the type's largest finite value.
int exponent_of(DType type) {
  switch (type) {
    case DType::boolean: return 1;
    case DType::f16: return 16;
    case DType::bf16:
    case DType::f32: return 128;
    case DType::f64: return 1024;
    default: return 8 * size_of(type);
  }
}

int exponent_of(double value) {
  return value == 0 || !std::isfinite(value) ? 0 : std::max(0, std::ilogb(value) + 1);
}

/// Of what an operation gives where its operands are below 2^a, 2^b and 2^c.
int exponent_of(const Node& node, const std::vector<int>& of) {
  const int largest = *std::max_element(of.begin(), of.end());
  switch (node.op) {
    case Op::neg:
    case Op::abs:
    case Op::min:
    case Op::max:
    case Op::convert: return largest;
    case Op::select: return std::max(of[1], of[2]);
    case Op::sign:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
    case Op::erf: return 1;
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::sqrt:
    case Op::add:
    case Op::sub: return largest + 1;
    case Op::mul: return of[0] + of[1];
    case Op::fma: return std::max(of[0] + of[1], of[2]) + 1;
    default: return std::numeric_limits<int>::max();
  }
}

/// Whether a result may be near the end of its integer type though operands are small: unsigned
/// numbers below zero, and what becomes of infinities.
bool reaches_end(const Graph& graph, const Node& node) {
  if (!is_integer(node.type)) return false;
  const DType from = graph.node(node.operands[0]).type;
  if (node.op == Op::convert && is_float(from)) return true;
  return !is_signed(node.type) &&
         (node.op == Op::neg || node.op == Op::sub || (node.op == Op::convert && is_signed(from)));
}

/// Of the nodes up to this one, whose operands stand before it.
std::vector<int> exponent_bounds(const Graph& graph, NodeId last) {
  std::vector<int> bounds;
  for (NodeId i = 0; i <= last; ++i) {
    const Node& node = graph.node(i);
    int bound = std::numeric_limits<int>::max();
    if (node.kind == NodeKind::constant) bound = exponent_of(double_of_bits(node.type, node.bits));
    if (node.kind == NodeKind::compute && !reaches_end(graph, node)) {
      std::vector<int> of;
      for (const NodeId operand : node.operands)
        of.push_back(bounds[static_cast<std::size_t>(operand)]);
      bound = exponent_of(node, of);
    }
    bounds.push_back(std::min(bound, exponent_of(node.type)));
  }
  return bounds;
}

}  // namespace

int exponent_bound(const Graph& graph, NodeId id) { return exponent_bounds(graph, id).back(); }

std::vector<bool> guarded_folds(const Graph& graph) {
  std::vector<bool> guarded(graph.folds.size(), false);
  const std::vector<int> bounds =
      exponent_bounds(graph, static_cast<NodeId>(graph.nodes.size()) - 1);
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) continue;
    const auto f = static_cast<std::size_t>(node.index);
    const Fold& fold = graph.folds[f];
    if (!fold.guard) continue;
    // Of moments squares of differences are added up.
    int bound = bounds[static_cast<std::size_t>(node.operands[0])];
    if (fold.moments) bound = 2 * (bound + 1);
    const int limit = std::isfinite(fold.guard->limit) ? std::ilogb(fold.guard->limit)
                                                       : exponent_of(fold.operands[0]) - 1;
    guarded[f] = guarded[f] || bound + kCountExponent > limit;
  }
  return guarded;
}

Graph by_elements(const Graph& graph, const std::vector<bool>& folds) {
  Graph slow = graph;
  for (std::size_t f = 0; f < folds.size(); ++f)
    if (folds[f]) slow.folds[f] = by_elements(slow.folds[f]);
  return slow;
}

}  // namespace chainfold::codegen
