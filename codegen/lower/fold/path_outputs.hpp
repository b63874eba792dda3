// PathOutputs: stores results of segments and of their elements, in the order of memory.
#pragma once

#include <cstddef>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/fold/path_tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class PathOutputs {
 public:
  /// `segments` is uniform. `mirrored`: segments are counted from the other end.
  PathOutputs(Builder& builder, TileLowering& tile, const Graph& graph, const Plan& plan,
              PathRows& rows, ValueId segments, bool mirrored)
      : b_(builder),
        tile_(tile),
        graph_(graph),
        plan_(plan),
        rows_(rows),
        segments_(segments),
        mirrored_(mirrored) {}

  /// Segments from `first` (uniform i64) on, a lane each where `mask` is true, of so many elements.
  void put(ValueId first, const Partials& states, ValueId extent, ValueId mask);
  /// One segment of so many elements; all is uniform.
  void put_one(ValueId segment, const Partials& states, ValueId extent);
  /// Elements of a tile. Lanes whose elements all have results store them at once, others one by
  /// one.
  void put_elements(PathTile& path, const PathTile::Scanned& some);
  /// One element, which is `at` in memory, with its folds' running values, of a segment of so many
  /// elements; all is uniform.
  void put_element(ValueId at, const Loaded& element, std::vector<ValueId> running, ValueId extent);

 private:
  /// Where output `o` holds a value for a segment; kNoValue: it holds all.
  ValueId has_room(std::size_t o, ValueId segment);
  [[nodiscard]] int buffer_of(std::size_t output) const {
    return static_cast<int>(graph_.inputs.size() + output);
  }
  ValueId in_memory(ValueId segment);

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  const Plan& plan_;
  PathRows& rows_;
  ValueId segments_;
  bool mirrored_;
};

}  // namespace chainfold::codegen
