#include "chainfold/codegen/lower/fold/head_condition.hpp"

#include <algorithm>

#include "chainfold/codegen/lower/tile/declare.hpp"

namespace chainfold::codegen {

void HeadCondition::begin(ValueId first, ValueId exists) {
  known_.clear();
  first_ = first;
  exists_ = exists;
}

void HeadCondition::find_leaves(NodeId id, std::int64_t distance, std::vector<Leaf>& leaves) const {
  const Node& node = graph_.partition.heads[static_cast<std::size_t>(id)];
  if (node.kind == NodeKind::input) {
    const Leaf leaf{id, distance};
    if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) leaves.push_back(leaf);
  } else if (node.kind == NodeKind::lag) {
    find_leaves(node.operands[0], node.index, leaves);
    find_leaves(node.operands[1], 0, leaves);
  } else {
    for (const NodeId operand : node.operands) find_leaves(operand, distance, leaves);
  }
}

std::vector<HeadCondition::Leaf> HeadCondition::leaves() const {
  std::vector<Leaf> leaves;
  find_leaves(static_cast<NodeId>(graph_.partition.heads.size()) - 1, 0, leaves);
  return leaves;
}

std::int64_t HeadCondition::farthest() const {
  std::int64_t distance = 0;
  for (const Leaf& leaf : leaves()) distance = std::max(distance, leaf.second);
  return distance;
}

Builder::Values HeadCondition::load() {
  Builder::Values loaded;
  for (const auto& [id, distance] : leaves()) loaded.push_back(value(id, distance));
  return loaded;
}

void HeadCondition::take(const Builder::Values& loaded) {
  std::size_t next = 0;
  for (const Leaf& leaf : leaves()) known_[leaf] = loaded[next++];
}

ValueId HeadCondition::told() {
  const auto last = static_cast<NodeId>(graph_.partition.heads.size()) - 1;
  return b_.both(b_.splat(value(last, 0)), exists_);
}

ValueId HeadCondition::heads() {
  const ValueId is_first =
      b_.both(b_.compute(Op::eq, {first_, b_.i64(0)}), b_.compute(Op::eq, {b_.lane(), b_.i32(0)}));
  return b_.compute(Op::bit_or, {told(), b_.both(is_first, exists_)});
}

ValueId HeadCondition::has_before(std::int64_t distance) {
  // As many lanes as the first element lacks have none.
  const ValueId lacks = b_.min(b_.sub(b_.i64(distance), first_), b_.i64(kWarpWidth));
  const ValueId lanes = b_.convert(b_.compute(Op::max, {lacks, b_.i64(0)}), DType::i32);
  return b_.both(exists_, b_.compute(Op::ge, {b_.lane(), lanes}));
}

ValueId HeadCondition::value(NodeId id, std::int64_t distance) {
  if (const auto found = known_.find({id, distance}); found != known_.end()) return found->second;
  const Node& node = graph_.partition.heads[static_cast<std::size_t>(id)];
  const ValueId result = computed(node, distance);
  known_[{id, distance}] = result;
  return result;
}

ValueId HeadCondition::computed(const Node& node, std::int64_t distance) {
  switch (node.kind) {
    case NodeKind::constant: return b_.constant(node.type, node.bits);
    case NodeKind::literal: return b_.param(node.index);
    case NodeKind::param: return b_.param(static_cast<int>(graph_.literals.size()) + node.index);
    case NodeKind::input: {
      const ValueId mask = distance == 0 || exists_ == kNoValue ? exists_ : has_before(distance);
      const ValueId at = place_in_input(b_, graph_, static_cast<std::size_t>(node.index),
                                        b_.sub(first_, b_.i64(distance)));
      return b_.load(node.index, {at}, 1, mask);
    }
    case NodeKind::lag:
      return b_.select(has_before(node.index), value(node.operands[0], node.index),
                       value(node.operands[1], 0));
    default: break;
  }
  Builder::Values operands;
  for (const NodeId operand : node.operands) operands.push_back(value(operand, distance));
  return is_cast(node.op) ? b_.cast(node.op, operands[0], node.type)
                          : b_.compute(node.op, operands);
}

}  // namespace chainfold::codegen
