#include "chainfold/codegen/lower/fold/head_condition.hpp"

#include "chainfold/codegen/lower/tile/declare.hpp"

namespace chainfold::codegen {

ValueId HeadCondition::heads(ValueId first, ValueId exists) {
  known_.clear();
  first_ = first;
  exists_ = exists;
  place_ = b_.add(first, b_.convert(b_.lane(), DType::i64));
  const auto last = static_cast<NodeId>(graph_.partition.heads.size()) - 1;
  const ValueId begins = b_.splat(value(last, 0));
  const ValueId is_first = b_.compute(Op::eq, {place_, b_.i64(0)});
  return b_.both(exists, b_.compute(Op::bit_or, {begins, is_first}));
}

ValueId HeadCondition::has_before(std::int64_t distance) {
  return b_.both(exists_, b_.compute(Op::ge, {place_, b_.i64(distance)}));
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
      const ValueId mask = distance == 0 ? exists_ : has_before(distance);
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
