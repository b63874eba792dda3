// Sums whose high bits nothing reads.
//
// Integers wrap, so the low bits of a sum are those of the operands' low bits. A sum in 64 bits is
// computed in 32 where every use converts it to a narrower integer. States, their exchanges between
// lanes and blocks, and a CPU's vectors halve.
//
// Before: a graph under construction and the outputs it is to have. After: the outputs with the
// same values, of nodes written as if the narrow sums had been asked for.
#include <algorithm>
#include <vector>

#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

namespace {

constexpr DType kNarrow = DType::i32;

bool is_narrowing(const Node& node) {
  return node.kind == NodeKind::compute && node.op == Op::convert && is_integer(node.type) &&
         size_of(node.type) <= size_of(kNarrow);
}

/// Whether the low bits of the result are those of the operands' low bits.
bool keeps_low_bits(Op op) {
  switch (op) {
    case Op::neg:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::fma:
    case Op::bit_not:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor: return true;
    default: return false;
  }
}

}  // namespace

NodeId GraphBuilder::low_bits(NodeId value) {
  // Operands stand before their users.
  const auto size = static_cast<std::size_t>(value) + 1;
  auto passes = [&](const Node& node) {  // on to its operands
    if (node.kind != NodeKind::compute || !is_integer(node.type)) return false;
    if (node.op == Op::convert) return is_integer(type(node.operands[0]));
    return keeps_low_bits(node.op);
  };
  std::vector<bool> needed(size);
  needed.back() = true;
  for (std::size_t id = size; id-- > 0;) {
    const Node& node = graph_.nodes[id];
    if (!needed[id] || size_of(node.type) <= size_of(kNarrow) || !passes(node)) continue;
    for (const NodeId operand : node.operands) needed[static_cast<std::size_t>(operand)] = true;
  }
  std::vector<NodeId> low(size, kNoNode);
  for (std::size_t id = 0; id < size; ++id) {
    if (!needed[id]) continue;
    const Node node = graph_.nodes[id];  // a copy: the list grows
    if (size_of(node.type) <= size_of(kNarrow) || !passes(node)) {
      low[id] = convert(static_cast<NodeId>(id), kNarrow);
      continue;
    }
    std::vector<NodeId> operands = renamed(node.operands, low);
    low[id] = node.op == Op::convert ? operands[0] : compute(node.op, std::move(operands));
  }
  return low.back();
}

std::vector<NodeId> GraphBuilder::narrow_sums(const std::vector<NodeId>& outputs) {
  const std::size_t size = graph_.nodes.size();
  auto is_wide_sum = [&](const Node& node) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) return false;
    const Fold& fold = graph_.folds[static_cast<std::size_t>(node.index)];
    return fold.linear && is_integer(node.type) && size_of(node.type) > size_of(kNarrow);
  };
  std::vector<bool> needed(size), read_whole(size);
  for (const NodeId output : outputs) {
    needed[static_cast<std::size_t>(output)] = true;
    read_whole[static_cast<std::size_t>(output)] = true;
  }
  for (std::size_t id = size; id-- > 0;) {
    const Node& node = graph_.nodes[id];
    if (!needed[id]) continue;
    for (const NodeId operand : node.operands) {
      const auto at = static_cast<std::size_t>(operand);
      needed[at] = true;
      if (!is_narrowing(node)) read_whole[at] = true;
    }
    if (node.filter != kNoNode) needed[static_cast<std::size_t>(node.filter)] = true;
  }
  std::vector<NodeId> now(size);
  for (std::size_t id = 0; id < size; ++id) {
    now[id] = static_cast<NodeId>(id);
    const Node node = graph_.nodes[id];                           // a copy: the list grows
    if (!needed[id] || node.kind != NodeKind::compute) continue;  // what folds read stays as it is
    const auto wide = static_cast<std::size_t>(node.operands[0]);
    if (is_narrowing(node) && !read_whole[wide] && is_wide_sum(graph_.nodes[wide])) {
      const Node sum = graph_.nodes[wide];
      const NodeId operand = low_bits(sum.operands[0]);
      const ScanForm form{.exclusive = sum.exclusive, .reverse = sum.reverse};
      const NodeId narrow = sum.kind == NodeKind::scan
                                ? scan(make_sum(kNarrow), {operand}, form, sum.filter)
                                : fold(make_sum(kNarrow), {operand}, sum.filter);
      now[id] = convert(narrow, node.type);
      continue;
    }
    now[id] = recomputed(static_cast<NodeId>(id), now);
  }
  return renamed(outputs, now);
}

}  // namespace chainfold::codegen
