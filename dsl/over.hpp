// cf::over: from expressions to the graph of a computation.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph.hpp"
#include "chainfold/dsl/expr.hpp"
#include "chainfold/dsl/partition.hpp"

namespace chainfold {

/// What is computed: a partition and outputs, as one graph in which equal inputs and subexpressions
/// are one. Immutable; copies share it, also across threads.
class Computation {
 public:
  explicit Computation(codegen::Graph graph)
      : graph_(std::make_shared<const codegen::Graph>(std::move(graph))) {}
  [[nodiscard]] const codegen::Graph& graph() const noexcept { return *graph_; }
  /// The number of outputs.
  [[nodiscard]] std::size_t outputs() const noexcept { return graph_->outputs.size(); }
  /// The level of output i: one value a segment, or one an element.
  [[nodiscard]] Level output_level(std::size_t i) const {
    return graph_->node(graph_->outputs.at(i)).level;
  }
  /// The element type of output i.
  [[nodiscard]] DType output_type(std::size_t i) const {
    return graph_->node(graph_->outputs.at(i)).type;
  }

 private:
  std::shared_ptr<const codegen::Graph> graph_;
};

namespace dsl {

template <Level L, bool Scans>
struct OutputRule {
  static_assert(
      L == Level::segment || Scans,
      "chainfold: every output of cf::over must fold, e.g. cf::sum(x) or cf::mean(x), or scan, "
      "e.g. cf::inclusive_sum(x); compute what does neither where it is used");
};

}  // namespace dsl

/// The computation of the outputs over each segment of the partition, in one pass over the inputs:
/// of each that folds a value a segment, of each that scans a value an element.
/// Throws UserError(duplicate_input) where one name stands for two things.
template <Expression... E>
Computation over(const dsl::Partition& partition, const E&... outputs) {
  static_assert(sizeof...(E) > 0, "chainfold: cf::over needs at least one output");
  ((void)dsl::OutputRule<E::kLevel, E::kScans>{}, ...);
  dsl::Walk walk;
  const codegen::Partition cut = partition.write(walk);
  std::vector<codegen::NodeId> ids{outputs.write(walk)...};
  return Computation(walk.builder.finish(std::move(ids), cut));
}

}  // namespace chainfold
