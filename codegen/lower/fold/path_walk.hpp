// PathWalk: what a stretch of a merge path has of one segment at a time.
//
// Lanes that are elements of vectors exchange nothing cheaply, and a tile of short segments is
// little else. So few elements are taken one by one, in values that are uniform, and many by all
// lanes at once.
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/segment_bounds.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class PathWalk {
 public:
  /// `elements` and `segments` are uniform. `mirrored`: elements and segments are counted from the
  /// other end, as `bounds` does.
  PathWalk(Builder& builder, TileLowering& tile, const Graph& graph, const Plan& plan,
           SegmentBounds& bounds, ValueId elements, ValueId segments, bool mirrored)
      : b_(builder),
        tile_(tile),
        graph_(graph),
        plan_(plan),
        bounds_(bounds),
        elements_(elements),
        segments_(segments),
        mirrored_(mirrored) {}

  /// Of segment `segment`, elements [begin, end), what a stretch has: [from, to), which is empty
  /// where `to` is not behind `from`. As they are counted, uniform i64.
  struct Piece {
    ValueId segment = kNoValue, begin = kNoValue, end = kNoValue;
    ValueId from = kNoValue, to = kNoValue;
    [[nodiscard]] ValueId extent(Builder& b) const { return b.sub(end, begin); }
  };
  /// Segments [begun, ended] of a stretch with elements [first, behind), one after the other. The
  /// last one may lie behind all segments, and has no elements then.
  void each_piece(ValueId begun, ValueId ended, ValueId first, ValueId behind,
                  const std::function<void(const Piece&)>& body);
  /// The last of them alone.
  Piece last_piece(ValueId ended, ValueId first, ValueId behind);
  /// Its states, a state that is the same in all lanes.
  Partials fold_by_lanes(const Piece& piece);
  /// The same in uniform values, one element behind the other if they are few (PathPlan::apart).
  Partials fold(const Piece& piece);
  /// Goes over its elements, of which `before` (uniform) is what comes before them, and hands over
  /// each with where it is in memory and its folds' running values. Returns the states behind them.
  using Sink = std::function<void(ValueId at, const Loaded& element, std::vector<ValueId> running)>;
  Partials scan(const Piece& piece, const Partials& before, const Sink& sink);

 private:
  using Visit =
      std::function<void(const Loaded& element, ValueId at, const Partials&, const Partials&)>;
  /// Elements one behind the other, added to what comes `before` by merges of the same form.
  Partials add_each(TileLowering& tile, const Piece& piece, const Partials& before,
                    const Visit& visit = nullptr);
  Builder::Values fold_many(const Piece& piece);
  Builder::Values fold_few(const Piece& piece);
  Partials over_lanes(const Piece& piece);
  Builder::Values bounds_of(ValueId segment);
  Piece piece_of(ValueId segment, const Builder::Values& bounds, ValueId first, ValueId behind);
  /// Where elements that are counted from `from` on begin in memory.
  ValueId in_memory(ValueId from, ValueId length);

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  const Plan& plan_;
  SegmentBounds& bounds_;
  ValueId elements_, segments_;
  bool mirrored_;
};

}  // namespace chainfold::codegen
