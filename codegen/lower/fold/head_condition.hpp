// HeadCondition: whether a segment begins at an element (Partition::heads), in a program.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class HeadCondition {
 public:
  HeadCondition(Builder& builder, const Graph& graph) : b_(builder), graph_(graph) {}
  /// Of the elements `first` (uniform i64) + lane that exist: a boolean a lane. Element 0 begins a
  /// segment whatever the condition says.
  ValueId heads(ValueId first, ValueId exists);

 private:
  /// A node's value `distance` elements before.
  ValueId value(NodeId id, std::int64_t distance);
  ValueId computed(const Node& node, std::int64_t distance);
  /// Lanes of elements that have one so far before them.
  ValueId has_before(std::int64_t distance);

  Builder& b_;
  const Graph& graph_;
  ValueId first_ = kNoValue, place_ = kNoValue, exists_ = kNoValue;
  std::map<std::pair<NodeId, std::int64_t>, ValueId> known_;
};

}  // namespace chainfold::codegen
