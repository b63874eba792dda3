// HeadTile: one tile of elements, of which a condition tells at which of them segments begin,
// folded by a warp.
//
// Each lane takes elements that follow each other. A head ends the segment before it. What a lane
// has of that segment goes to the shared slot of the head, in the order of heads, and what lanes
// before have of it is merged into the slot of a lane's first head. Slots are taken 32 at a time,
// so that results are stored side by side. Behind the last element of all is a head that begins
// nothing.
//
// The condition of the next tile is looked at while a tile is folded, element by element of a row
// of lanes, so that loads lie side by side whatever it reads. Heads are bytes in shared memory.
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/head_condition.hpp"
#include "chainfold/codegen/lower/fold/path_going.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class HeadTile {
 public:
  /// Declares the shared arrays of the program's last launch. `elements`: of the inputs, uniform.
  HeadTile(Builder& builder, Program& program, TileLowering& tile, const Graph& graph,
           const Plan& plan, ValueId elements);

  using Going = PathGoing::Going;
  PathGoing& going() { return going_; }
  /// Segments that end: those of lanes where `exist`, of `extent` elements (lane i64, where asked
  /// for). The first lane's is ended by head number `rank` of the stretch, uniform i32.
  struct Ended {
    ValueId rank = kNoValue, exist = kNoValue, extent = kNoValue;
    Partials states{};
  };
  using Sink = std::function<void(const Ended&)>;
  /// What goes from tile to tile.
  struct Carry {
    Going going;
    ValueId heads = kNoValue;    ///< those of the stretch so far, uniform i32
    ValueId head_at = kNoValue;  ///< the place of the last one, i64, where asked for
  };
  /// What a stretch begins with: the state of nothing, and where the last head before it is.
  Carry begin(ValueId head_at);
  Builder::Values flatten(const Carry& carry);
  Carry unflatten(Builder::Values values);

  /// A tile's elements, to be loaded while the one in front of it is folded. Lane-shaped. `at` is
  /// the tile's first element (uniform i64) and `there` whether there is such a tile.
  Builder::Values load_elements(ValueId at, ValueId there);
  /// Which tile is the next one: loads what the condition reads of it, if registers hold that.
  void expect(ValueId at, ValueId there);
  /// Writes that tile's heads, for the next fold().
  void mark_heads();
  /// Folds the tile that begins at `at`, of these elements, and hands over what ends in it.
  Carry fold(ValueId at, const Builder::Values& elements, const Carry& before, const Sink& ended);

 private:
  std::vector<Loaded> loads_of(const Builder::Values& elements);
  void give_positions(std::vector<Loaded>& loads, ValueId at, ValueId head_at,
                      const std::vector<ValueId>& heads, ValueId last_before);
  /// A lane's elements: whether each is a head, and 1 or 0 (i32).
  struct Flags {
    std::vector<ValueId> heads, ones;
  };
  Flags load_flags();
  void load_condition();
  ValueId exists_in(int row, ValueId room);
  Carry fold_heads(ValueId at, const Builder::Values& elements, ValueId has_head,
                   const Carry& before, const Sink& ended);
  /// What lanes know of each other's heads.
  struct Lanes {
    ValueId rank = kNoValue;       ///< heads of the tile before a lane's
    ValueId has_head = kNoValue;   ///< whether a lane has some
    ValueId nearest = kNoValue;    ///< the last lane up to it that has; 0: there is none
    ValueId open_here = kNoValue;  ///< whether none before it has
  };
  void fold_one(std::size_t fold, const std::vector<Partials>& loads, const Lanes& lanes,
                Partials& open);
  void hand_over(ValueId at, ValueId count, const Carry& before, const Sink& ended);
  [[nodiscard]] ValueId place_of(int element);  ///< in the tile, i32

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  const Plan& plan_;
  PathGoing going_;
  ValueId elements_;
  int each_;  // elements of a lane
  std::vector<HeadCondition> rows_;
  ValueId marked_ = kNoValue;  // the first element of the tile whose heads come next, i64
  ValueId end_ = kNoValue;     // the place behind all elements in it, i32
  ValueId there_ = kNoValue;   // whether there is such a tile, uniform boolean
  bool early_;                 // what the condition reads is loaded before a tile is folded
  bool asks_places_, asks_extent_, asks_heads_;
  int flags_ = 0, heads_at_ = 0;  // shared arrays
  StateArrays slots_;
};

}  // namespace chainfold::codegen
