// Partial states of a computation, in the open: what folds know of some of the elements, as plain
// numbers that other machines, plans and processes go on with.
//
// Semantics. One state of a graph is the number of rows that it has seen and then, fold by fold in
// the order of Graph::folds, the fields of the fold's state (fold.hpp). Three graphs, each of them
// compiled like any other, are made of the graph:
//
//   to_states      elements  -> a state a segment, under the graph's own partition
//   merge_states   states    -> a state a segment of them, in their order
//   from_states    states    -> the graph's outputs, one value a state
//
// A state of nothing is `init`. Folding elements, and merging the states of any runs that they are
// cut into, in order, give the same up to rounding, and bit for bit where merges are exact. An
// index in a state (argmin, argmax) counts from the state's own first row: merges add the rows of
// the states before it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

/// Where the fields of a state lie in its bytes: each at a multiple of its own size, all together a
/// multiple of 8, little-endian. Booleans are a byte. The first field is the number of rows, i64.
struct StateLayout {
  struct Field {
    std::string name;  ///< "rows", or "sum.f32 0" for field 0 of a fold
    DType type = DType::i64;
    std::int64_t offset = 0;
    Bits init = 0;
  };
  std::vector<Field> fields;
  std::int64_t bytes = 0;
  /// Of folds and their operands' types, not of expressions, plans or builds: states of equal
  /// hashes merge.
  std::uint64_t hash = 0;
};
/// Throws UserError(unsupported), naming what it is, for scans, for elements that read their
/// segment's folds, and for folds whose elements or conditions are computed from `index()` but
/// argmin's and argmax's own: their states do not tell which elements they were of.
StateLayout state_layout(const Graph& graph);

/// The three graphs. Outputs and inputs of states are those of StateLayout::fields, in that order:
/// inputs are named "state_0", "state_1" and so on. All throw as state_layout() does.
Graph to_states(const Graph& graph);
/// `partition`: of the states, of which each row is one; whole, or segments of a constant size.
Graph merge_states(const Graph& graph, const Partition& partition);
Graph from_states(const Graph& graph);

/// Merges two states by the definition of the operations, as merge_states() does two rows: for one
/// or few, where a launch takes longer.
class StateMerge {
 public:
  /// Throws as state_layout() does.
  explicit StateMerge(const Graph& graph);
  /// `later` behind `into`; a number a field, in the order of StateLayout::fields.
  void operator()(std::span<Bits> into, std::span<const Bits> later) const;

 private:
  struct OfFold {
    Lambda merge;
    std::size_t fields = 0;
    bool indexed = false;  ///< the rows of both come before their fields
  };
  std::vector<OfFold> folds_;
};

}  // namespace chainfold::codegen
