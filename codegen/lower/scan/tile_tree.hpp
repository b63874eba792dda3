// TileTree: how blocks that work on tiles learn from each other what comes before a tile.
//
// Blocks take tiles by tickets. A tile publishes the fold of its elements. A group is 32 tiles in a
// row, whose last tile publishes the group's fold one level up. There 32 groups make one of the
// next level. By the digits of a tile's number to the base 32, what comes before it is at most 31
// folds of each level. Of the last level it is all there are. The tree depends on the tile alone,
// so sums have the same bits however the blocks happen to run. No tile waits for a chain of others.
// Levels are looked at by a warp each.
//
// A group's fold is there one round trip later than the last of its tiles'. So a block that has
// warps enough also looks at the look-back window (ScanPlan::window), the groups before its own,
// slot by slot. A warp takes a group of it. At the level above it looks only at what was published
// long ago.
//
// A CPU's thread looks at the groups of the window one after the other. When it has taken a tile it
// may be off its core for milliseconds, while all others come to wait for its fold. Where all
// outputs lie apart from inputs, other threads fold the tile themselves after a while, and publish
// the same bits. Smith, Levien and Owens do so where nothing promises progress (Decoupled Fallback,
// SPAA 2025). The fold of a group has no such help. It comes from the tile that ends it, and those
// that are two trips of all threads behind ask for it.
//
// Where tiles are of all segments (ScanPlan::heads), a slot has the fold of what follows the last
// head in its tiles. Where heads lie is known. So what comes before a tile are the same slots, from
// the one on in which its segment begins. No other slot is looked at or waited for.
//
// With interleaved tickets (ScanPlan::interleaved) the tree is the same, and the tiles that a tile
// waits for have tickets that lie further back.
#pragma once

#include <functional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

class TileTree {
 public:
  /// Declares the counter of tickets and the slots behind the program's buffers.
  TileTree(Program& program, const Graph& graph, const Plan& plan, const TileParams& params);

  /// A launch after which no slot is published and no ticket taken.
  void lower_clear(const Target& target);
  ValueId ticket(Builder& b) const { return b.ticket(counter_); }
  /// The calling warp publishes the fold of the tile at which `tiles` is, which was taken as
  /// `ticket`.
  void publish(Builder& b, ScanTiles& tiles, ValueId ticket, const Partials& own) const;
  /// The fold of the tile that was taken as a ticket, whoever took it.
  using Refold = std::function<Partials(ValueId)>;
  /// The fold of all elements before the tile; only once a launch, by all warps, with a barrier if
  /// there are several. Publishes the groups that end with the tile, and, if `publishes`, its own
  /// fold, which `own` gives, before it waits. With `refold` blocks help each other.
  Partials before(Builder& b, ScanTiles& tiles, ValueId ticket,
                  const std::function<Partials()>& own, bool publishes,
                  const Refold& refold = {}) const;

 private:
  /// Groups of the look-back window at this level, of which each slot is looked at.
  [[nodiscard]] int near(int level) const;
  /// Looks at the levels below: each is of 32 slots at most.
  [[nodiscard]] int looks_before(int level) const;
  /// The slot of the tile, or of its group, at a level.
  static ValueId own_slot(Builder& b, ScanTiles& tiles, int level);
  /// One behind the last slot of the segment at this level of which a tile takes account.
  ValueId end_of(Builder& b, ScanTiles& tiles, int level) const;
  void publish_at(Builder& b, ScanTile& run, int level, ValueId slot, ValueId ticket,
                  const Partials& states, bool helps = false) const;
  [[nodiscard]] std::vector<DType> state_types() const;
  /// In launches with non-temporal stores, publishes the folds of tiles of the look-back window
  /// whose blocks are late. Tiles are of one segment each, whose tickets follow each other.
  void help(Builder& b, ScanTiles& tiles, ValueId ticket, const Refold& refold) const;
  /// The fold of `count` (i64, at most 32) slots from `first` on, the j-th of which counts from
  /// `offset` slots behind the group's beginning.
  Partials fold_slots(Builder& b, ScanTiles& tiles, int level, ValueId first, ValueId count,
                      ValueId ticket, ValueId offset) const;
  /// The fold of the slots before the tile's own one in its group of 32 (at the last level of all).
  /// With `back` (i64), the fold of the group that lies so many groups before it; nothing where
  /// there is none.
  Partials look_at(Builder& b, ScanTiles& tiles, int level, ValueId back, ValueId ticket) const;

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  const TileParams& params_;
  int counter_ = 0;
  int records_[kTreeLevels] = {};  ///< slots that carry states
};

}  // namespace chainfold::codegen
