#include "chainfold/codegen/lower/fold/head_condition.hpp"

#include <algorithm>

#include "chainfold/codegen/lower/tile/declare.hpp"

namespace chainfold::codegen {

HeadCondition::HeadCondition(Builder& builder, const Graph& graph) : b_(builder), graph_(graph) {
  std::set<Before> seen;
  find_leaves({static_cast<NodeId>(graph.partition.heads.size()) - 1, 0}, seen);
}

void HeadCondition::find_leaves(const Before& at, std::set<Before>& seen) {
  if (!seen.insert(at).second) return;
  const auto& [id, distance] = at;
  const Node& node = graph_.partition.heads[static_cast<std::size_t>(id)];
  if (node.kind == NodeKind::input) leaves_.push_back(at);
  const bool lags = node.kind == NodeKind::lag;
  for (std::size_t i = 0; i < node.operands.size(); ++i)
    find_leaves({node.operands[i], !lags ? distance : i == 0 ? node.index : 0}, seen);
}

void HeadCondition::begin(ValueId first, ValueId exists) {
  known_.clear();
  first_ = first;
  exists_ = exists;
}

std::int64_t HeadCondition::farthest() const {
  std::int64_t distance = 0;
  for (const Before& leaf : leaves_) distance = std::max(distance, leaf.second);
  return distance;
}

int HeadCondition::words() const {
  constexpr int kWord = 4;
  int words = 0;
  for (const auto& [id, distance] : leaves_) {
    const Node& node = graph_.partition.heads[static_cast<std::size_t>(id)];
    words += std::max(1, size_of(node.type) / kWord);
  }
  return words;
}

Builder::Values HeadCondition::load() {
  Builder::Values loaded;
  for (const auto& [id, distance] : leaves_) loaded.push_back(value(id, distance));
  return loaded;
}

void HeadCondition::take(const Builder::Values& loaded) {
  for (std::size_t i = 0; i < leaves_.size(); ++i) known_[leaves_[i]] = loaded[i];
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
