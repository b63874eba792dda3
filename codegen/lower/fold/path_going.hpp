// PathGoing: what a warp has of the segment that goes on behind its tiles.
//
// A tile in which no segment begins or ends is quiet. Lanes fold what they have of it into states
// of their own, and exchange nothing until a segment ends. Folds whose order matters are merged
// across lanes tile by tile.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

class PathGoing {
 public:
  /// `quiet`: there may be quiet tiles.
  PathGoing(Builder& builder, TileLowering& tile, const Graph& graph, bool quiet)
      : b_(builder), tile_(tile), graph_(graph), quiet_(quiet) {}

  /// A state that is the same in all lanes, and a state a lane of the quiet tiles since then.
  struct Going {
    Partials open;
    Partials quiet{};
    ValueId is_quiet = kNoValue;  ///< whether there were such tiles, uniform boolean
  };
  Going from(Partials open);
  Builder::Values flatten(const Going& going);
  Going unflatten(const Builder::Values& values);
  /// All of it as one state.
  Partials settle(const Going& going);
  /// Adds a quiet tile: of each lane, loads of elements that follow each other.
  void add(const std::vector<Loaded>& loads, Going& going);

  /// The inputs that folds read.
  [[nodiscard]] std::vector<std::size_t> used_inputs() const;
  /// `a` where a condition is true, a lane or all of them.
  Partial choose(ValueId condition, const Partial& a, const Partial& b);
  /// Of each lane what a lane so many below it has.
  Partial shuffled_up(const Partial& part, int distance);
  using Merge = std::function<Partial(const Partial& earlier, const Partial& later)>;
  /// Of each lane's state since its last head, that since the last head up to it: `nearest` is the
  /// last lane up to each one that has a head, 0 where there is none.
  Partial since_heads(Partial state, ValueId nearest, const Merge& merge);
  /// What comes before each lane's elements since the last head. Where there is none
  /// (`open_here`), `open` comes before that.
  Partial before_lanes(const Partial& since, const Partial& open, ValueId is_first,
                       ValueId open_here, const Merge& merge);
  /// Of each of a load's elements the partial of one.
  static Partial element_of(Builder& b, Partial part, int element);

 private:
  /// What each lane has of elements of one segment.
  Partials sums_of(const std::vector<Loaded>& loads);

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  bool quiet_;
};

}  // namespace chainfold::codegen
