// What all lowerings share: from loaded vectors to partial results of every fold, across the lanes
// of a warp, to the values of the outputs.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "chainfold/codegen/builder.hpp"
#include "chainfold/codegen/graph.hpp"
#include "chainfold/codegen/plan.hpp"

namespace chainfold::codegen {

/// A partial result of one fold. Not lifted: one tile value that stands for lift(value). Lifted: a
/// state.
struct Partial {
  std::vector<ValueId> fields;
  bool lifted = false;
  bool complete = false;  ///< every lane of a group already holds its group's result
};
using Partials = std::vector<Partial>;  // one a fold

/// What a warp loaded for one tile: a vector of `width` elements a lane of each input.
struct Loaded {
  std::vector<ValueId> inputs;
  ValueId mask = kNoValue;  ///< lanes that hold elements; the others hold zeros
  int width = 1;
};

/// Buffers and parameters that every strategy declares: inputs, outputs, literals, user parameters.
void declare_graph(Program& program, const Graph& graph, const Plan& plan);
int add_param(Program& program, std::string name, DType type, ParamRole role, int index = 0);

class TileLowering {
 public:
  TileLowering(Builder& builder, const Graph& graph, const Plan& plan);

  /// The inputs that folds or filters read, `width` elements a lane.
  Loaded load(const Address& at, int width, ValueId mask);
  /// Every fold's partial of one tile, a value (or state) a lane.
  Partials fold_tile(const Loaded& tile);
  /// `tiles` consecutive tiles from `begin` on, lanes at or beyond `limit` masked (kNoValue: none).
  std::vector<Loaded> load_batch(ValueId begin, int tiles, ValueId limit, ValueId row_mask);
  /// The merged partials of tiles whose loads are all in flight.
  Partials fold_batch(const std::vector<Loaded>& batch);
  /// The partials of elements [begin, begin + length) of the buffers, spread over a warp's lanes;
  /// `warp` of `warps` warps shares the range with the others. begin and length are uniform i64.
  Partials fold_range(ValueId begin, ValueId length, ValueId row_mask, ValueId warp, int warps);

  Partial identity(std::size_t fold);
  Partial merge(std::size_t fold, const Partial& a, const Partial& b);
  Partials merge(const Partials& a, const Partials& b);
  Partial lift(std::size_t fold, const Partial& a);
  Partials lift(Partials a);
  /// Lifted sums and the like back to one rounded value, so that later merges are cheap.
  Partials collapse(Partials a);
  /// Every lane of a group of `lanes` lanes receives the merge over bits [first, lanes) of the
  /// group.
  Partials reduce_lanes(Partials a, int first, int lanes);
  /// Two rows in, one out: lanes with bit `mask` clear hold a's pair merge, the others b's.
  Partials pair_rows(const Partials& a, const Partials& b, int mask);
  /// Type-stable form for carrying through loops and branches: lifted, lane-shaped fields.
  std::vector<ValueId> flatten(const Partials& lifted);
  Partials unflatten(const std::vector<ValueId>& fields);

  /// The outputs, in the graph's order, from every fold's finished partial. `extent` is the i64
  /// number of elements of the segment.
  std::vector<ValueId> finish(const Partials& partials, ValueId extent);

 private:
  struct Scope {
    std::map<NodeId, ValueId> values;
  };
  /// The values of the inputs' nodes in a tile; others are added as they are computed.
  Scope scope_of(const Loaded& tile) const;
  ValueId node_value(NodeId id, Scope& scope);
  ValueId uniform_value(NodeId id);
  Partial fold_simt(std::size_t fold, const Loaded& tile, Scope& scope);
  Partial fold_mma(std::size_t fold, const Loaded& tile);
  ValueId mma_small_segments(std::size_t fold, ValueId vec, const Loaded& tile);
  std::vector<ValueId> call(const Lambda& lambda, const std::vector<ValueId>& arguments);
  const Node& fold_node(std::size_t fold) const;
  Partial tree(std::size_t fold, std::vector<Partial> parts);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  std::vector<NodeId> fold_nodes_;
  std::vector<bool> input_used_;
};

}  // namespace chainfold::codegen
