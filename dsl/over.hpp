// cf::over: from expressions to the graph of a computation.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/float_environment.hpp"
#include "chainfold/codegen/graph/graph.hpp"
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

/// A computation whose output types are known to the compiler: what cf::over returns. T... are the
/// C++ types, e.g. TypedComputation<float, std::int64_t>.
template <class... T>
class TypedComputation : public Computation {
 public:
  using Computation::Computation;
};

namespace dsl {

/// The C++ type of elements of type T.
template <DType T>
using CppType = std::tuple_element_t<
    static_cast<std::size_t>(T),
    std::tuple<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
               std::uint32_t, std::int64_t, std::uint64_t, f16, bf16, float, double>>;

template <Level L, bool Scans>
struct OutputRule {
  static_assert(
      L == Level::segment || Scans,
      "chainfold: every output of cf::over must fold, e.g. cf::sum(x) or cf::mean(x), or scan, "
      "e.g. cf::inclusive_sum(x); compute what does neither where it is used");
};

template <class First, class... Rest>
struct OverArgumentsRule {
  static constexpr bool kPartition = std::same_as<First, Partition>;
  static constexpr bool kExpressions = (Expression<Rest> && ...);
  static_assert(kPartition,
                "chainfold: cf::over takes a partition first, cf::whole(), cf::segments(n), "
                "cf::columns(n), cf::offsets(name) or cf::heads(condition), and then the outputs, "
                "e.g. cf::over(cf::whole(), cf::sum(x))");
  static_assert(!kPartition || kExpressions,
                "chainfold: an output of cf::over is no expression; outputs are folds and scans, "
                "e.g. cf::sum(x), cf::fold(monoid, x) or cf::inclusive_sum(x)");
};

}  // namespace dsl

/// The computation of the outputs over each segment of the partition, in one pass over the inputs.
/// An output that folds has one value a segment, one that scans has one value an element.
/// Throws UserError(duplicate_input) where one name stands for two things.
template <Expression... E>
auto over(const dsl::Partition& partition, const E&... outputs) {
  static_assert(sizeof...(E) > 0, "chainfold: cf::over needs at least one output");
  ((void)dsl::OutputRule<E::kLevel, E::kScans>{}, ...);
  const codegen::DefaultFloatEnvironment environment;
  dsl::Walk walk;
  const codegen::Partition cut = partition.write(walk);
  const codegen::NodeId condition =
      partition.condition ? partition.condition(walk) : codegen::kNoNode;
  std::vector<codegen::NodeId> ids{outputs.write(walk)...};
  return TypedComputation<dsl::CppType<E::kType>...>(
      walk.builder.finish(std::move(ids), cut, condition));
}

/// Refused: what is no partition and expressions.
template <class First, class... Rest>
  requires(!std::same_as<First, dsl::Partition> || !(Expression<Rest> && ...))
auto over(const First&, const Rest&...) {
  (void)dsl::OverArgumentsRule<First, Rest...>{};
  return Computation(codegen::Graph{});
}

}  // namespace chainfold
