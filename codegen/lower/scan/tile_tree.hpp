// TileTree: how blocks that work on tiles tell each other what comes before a tile.
//
// Blocks take tiles by tickets. A tile publishes the fold of its elements; 32 tiles in a row make a
// group, whose last tile publishes the group's fold one level up, and 32 groups one of the next.
// What comes before a tile is, by the digits of its number to the base 32, at most 31 folds of each
// level (of the last level all there are): the tree depends on the tile alone, so that sums have
// the same bits however the blocks happen to run, and no tile waits for a chain of others. Levels
// are looked at by a warp each.
//
// A group's fold is there one round trip later than the last of its tiles'. Where a block has warps
// enough it looks at some groups before its own (ScanPlan::window) slot by slot as well, a warp a
// group, and at the level above only at what was published long ago.
//
// A CPU's thread looks at near groups one after the other. When it has taken a tile it may be off
// its core for milliseconds, while all others come to wait for its fold. Where all outputs lie
// apart from inputs, others fold the tile themselves after a while, and publish the same bits (as
// Smith, Levien and Owens do where nobody promises progress, Decoupled Fallback, SPAA 2025). The
// fold of a group has no such help: it comes from the tile that ends it, and is asked for by those
// that are two rounds of all threads behind.
//
// Where tiles are of all segments (ScanPlan::heads), a slot has the fold of what follows the last
// head in its tiles. Where heads lie is known, so what comes before a tile are, of the same slots,
// those from the one on in which its segment begins; none of others is looked at or waited for.
//
// Where tickets go across segments (ScanPlan::interleaved), the tree is the same, and whom a tile
// waits for has tickets that lie further back.
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
  /// The fold of the whole input before the tile; only once a launch, by all warps, with a barrier
  /// if there are several. Publishes the groups that end with the tile, and, if `publishes`, its
  /// own fold, which `own` gives, before it waits. With `refold` blocks help each other.
  Partials before(Builder& b, ScanTiles& tiles, ValueId ticket,
                  const std::function<Partials()>& own, bool publishes,
                  const Refold& refold = {}) const;

 private:
  /// Groups before the own one of whose slots at this level each is looked at.
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
  /// In launches that stream, publishes the folds of near tiles whose blocks are late: of one
  /// segment each, whose tickets follow each other.
  void help(Builder& b, ScanTiles& tiles, ValueId ticket, const Refold& refold) const;
  /// The fold of `count` (i64, at most 32) slots from `first` on, the j-th of which counts from
  /// `offset` slots behind the group's beginning.
  Partials fold_slots(Builder& b, ScanTiles& tiles, int level, ValueId first, ValueId count,
                      ValueId ticket, ValueId offset) const;
  /// The fold of the slots before that one in its group of 32 (at the last level of all), or of the
  /// group that lies `back` (i64) groups before it; nothing where there is none.
  Partials look_at(Builder& b, ScanTiles& tiles, int level, ValueId back, ValueId ticket) const;

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  const TileParams& params_;
  int counter_ = 0;
  int records_[kTreeLevels] = {};  ///< slots that carry states
};

}  // namespace chainfold::codegen
