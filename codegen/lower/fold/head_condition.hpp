// HeadCondition: whether a segment begins at an element (Partition::heads), in a program.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class HeadCondition {
 public:
  HeadCondition(Builder& builder, const Graph& graph);
  /// Of the elements `first` (uniform i64) + lane that exist: a boolean a lane. Element 0 begins a
  /// segment whatever the condition says.
  ValueId heads(ValueId first, ValueId exists) {
    begin(first, exists);
    load();
    return heads();
  }
  /// The same in steps: which elements, what is loaded of them, and whether it makes heads.
  void begin(ValueId first, ValueId exists);
  Builder::Values load();
  ValueId heads();
  /// What the condition says, of the first element as well.
  ValueId told();
  /// Other values of the loads, in their order.
  void take(const Builder::Values& loaded);
  /// How many elements before its own the condition reads.
  [[nodiscard]] std::int64_t farthest() const;
  /// Words of a lane that hold what is loaded.
  [[nodiscard]] int words() const;

 private:
  using Before = std::pair<NodeId, std::int64_t>;  ///< a node, so many elements before
  void find_leaves(const Before& at, std::set<Before>& seen);
  /// A node's value `distance` elements before.
  ValueId value(NodeId id, std::int64_t distance);
  ValueId computed(const Node& node, std::int64_t distance);
  /// Lanes of elements that have one so far before them.
  ValueId has_before(std::int64_t distance);

  Builder& b_;
  const Graph& graph_;
  ValueId first_ = kNoValue, exists_ = kNoValue;
  std::vector<Before> leaves_;  // inputs, in the order of their loads
  std::map<Before, ValueId> known_;
};

}  // namespace chainfold::codegen
