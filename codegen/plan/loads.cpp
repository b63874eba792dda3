// How many bytes a lane loads at once: the types of the inputs, and what is done to them, say so.
#include "chainfold/codegen/plan/loads.hpp"

#include <algorithm>
#include <bit>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

namespace {

/// Whether all inputs are of this type.
bool reads_only(const Graph& graph, DType type) {
  return !graph.inputs.empty() &&
         std::all_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](const GraphInput& input) { return input.type == type; });
}

/// Whether elements of this type are read as floats.
bool reads_as_floats(const Graph& graph, DType type) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return node.kind == NodeKind::compute && node.op == Op::convert && is_float(node.type) &&
           graph.node(node.operands[0]).type == type &&
           graph.node(node.operands[0]).level == Level::element;
  });
}

/// Whether all inputs are of this type, and read as floats.
bool reads_only_as_floats(const Graph& graph, DType type) {
  return reads_only(graph, type) && reads_as_floats(graph, type);
}

/// Whether all that is done to elements is to sum them up in more bits.
bool only_sums_elements(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (node.kind == NodeKind::index) return false;
    if (node.kind != NodeKind::fold) return true;
    if (node.operands.size() != 1) return false;
    const Node& operand = graph.node(node.operands[0]);
    return graph.folds[static_cast<std::size_t>(node.index)].tile == Op::add &&
           node.filter == kNoNode && operand.kind == NodeKind::compute &&
           operand.op == Op::convert && is_integer(operand.type) &&
           graph.node(operand.operands[0]).kind == NodeKind::input;
  });
}

}  // namespace

int range_width_of(const Graph& graph, const Target& target) {
  const bool f16 = target.f16_words && reads_only_as_floats(graph, DType::f16);
  return f16 ? 2 : range_load_of(graph, target);
}

int range_load_of(const Graph& graph, const Target& target) {
  return target.words && reads_only_as_floats(graph, DType::bf16) ? 2 : 1;
}

int widest_input(const Graph& graph) {
  int bytes = 1;
  for (const GraphInput& input : graph.inputs) bytes = std::max(bytes, size_of(input.type));
  return bytes;
}

int load_bytes(const Graph& graph, const Target& target) {
  constexpr int kWord = 4;
  if (!target.words || has_scans(graph)) return target.vector_bytes;
  const bool bytes = reads_only(graph, DType::i8) || reads_only(graph, DType::u8);
  const bool words = reads_only_as_floats(graph, DType::bf16) ||
                     (bytes && !has_columns(graph) && only_sums_elements(graph));
  return words ? kWord : target.vector_bytes;
}

int widest_load(const Graph& graph, const Target& target, int bytes_at_most) {
  const int bytes = std::min(load_bytes(graph, target), bytes_at_most);
  return std::max(1, static_cast<int>(std::bit_floor(
                         static_cast<unsigned>(std::max(1, bytes / widest_input(graph))))));
}

}  // namespace chainfold::codegen
