// Sums whose high bits nobody reads.
//
// Integers wrap, so the low bits of a sum are those of the operands' low bits: a sum in 64 bits of
// which every use converts it to a narrower integer is computed in 32. States, their exchanges
// between lanes and blocks, and a CPU's vectors halve.
//
// Before: a graph under construction and the outputs it is to have. After: the same values, with
// nodes behind the old ones that stand for the conversions; the sums that they have left are used
// by nobody.
#include <algorithm>
#include <vector>

#include "chainfold/codegen/graph.hpp"

namespace chainfold::codegen {

namespace {

constexpr DType kNarrow = DType::i32;

bool is_narrowing(const Node& node) {
  return node.kind == NodeKind::compute && node.op == Op::convert && is_integer(node.type) &&
         size_of(node.type) <= size_of(kNarrow);
}

}  // namespace

std::vector<NodeId> GraphBuilder::narrow_sums(const std::vector<NodeId>& outputs) {
  const std::size_t size = graph_.nodes.size();
  std::vector<NodeId> stands_for(size);
  for (std::size_t id = 0; id < size; ++id) stands_for[id] = static_cast<NodeId>(id);
  auto is_wide_sum = [&](const Node& node) {
    if (node.kind != NodeKind::fold && node.kind != NodeKind::scan) return false;
    const Fold& fold = graph_.folds[static_cast<std::size_t>(node.index)];
    return fold.linear && is_integer(node.type) && size_of(node.type) > size_of(kNarrow);
  };
  // Of what the outputs need: users stand behind their operands.
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
  for (std::size_t id = 0; id < size; ++id) {
    if (!needed[id] || !is_narrowing(graph_.nodes[id])) continue;
    const auto wide = static_cast<std::size_t>(graph_.nodes[id].operands[0]);
    const Node sum = graph_.nodes[wide];  // copies: the list grows
    if (read_whole[wide] || !is_wide_sum(sum)) continue;
    const DType type = graph_.nodes[id].type;
    const NodeId operand = convert(sum.operands[0], kNarrow);
    const ScanForm form{.exclusive = sum.exclusive, .reverse = sum.reverse};
    const NodeId narrow = sum.kind == NodeKind::scan
                              ? scan(make_sum(kNarrow), {operand}, form, sum.filter)
                              : fold(make_sum(kNarrow), {operand}, sum.filter);
    stands_for[id] = convert(narrow, type);
  }
  return stands_for;
}

}  // namespace chainfold::codegen
