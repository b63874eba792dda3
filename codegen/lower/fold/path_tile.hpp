// PathTile: one tile of a merge path, folded by a warp.
//
// Each lane takes elements that follow each other, all lanes together a row. Heads are elements at
// which a segment begins, and what begins or ends the tile: nothing is merged across a head, but
// what the tile's first segment has from before. A lane's states of each element since the last
// head among its own go to shared memory, and what comes before its first element since the last
// head. A segment's state is then that at its last element, behind what comes before that lane.
// Segments are taken 32 at a time, so that results are stored side by side, and empty ones need
// nothing of their own. Where elements have results each has its state in full.
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_going.hpp"
#include "chainfold/codegen/lower/fold/segment_bounds.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

/// Its parts: tiles and their ends (path_tile.cpp), loads (path_tile_loads.cpp), and where elements
/// are in their segments (path_tile_places.cpp).
class PathTile {
 public:
  /// Further off than any place of a stretch.
  static constexpr std::int64_t kFar = std::int64_t{1} << 30;

  /// Declares the shared arrays of the program's last launch. `elements`: of the inputs, uniform.
  /// `scans`: elements have results. `mirrored`: elements and segments are counted from the other
  /// end, as `bounds` does.
  PathTile(Builder& builder, Program& program, TileLowering& tile, const Graph& graph,
           const Plan& plan, SegmentBounds& bounds, bool pairs, ValueId elements, ValueId segments,
           bool scans, bool mirrored);
  /// Where `width` elements of each lane are in memory, `each` from lane to lane, of which those of
  /// lane 0 begin at `at` as they are counted.
  Address address_of(ValueId at, int width, int each);
  /// A lane's elements in the other order where they are counted from the other end.
  ValueId in_memory_order(ValueId value);

  /// Begins a stretch at this segment and element (uniform i64). Places and segments of what
  /// follows count from there, in 32 bits: 64 take twice as many instructions.
  void begin(ValueId segment, ValueId element);
  /// The place of the stretch's first element.
  [[nodiscard]] ValueId first_element() const { return stretch_first_; }

  /// Ends and elements on the path, all uniform i32: the tile has ends [segment, next_segment) and
  /// elements [element, next_element).
  struct Span {
    ValueId segment = kNoValue, element = kNoValue;
    ValueId next_segment = kNoValue, next_element = kNoValue;
    Builder::Values early{};  ///< what load_early() gave
    Builder::Values near{};   ///< begins and ends of its first segments, as places
  };
  /// Loads of a tile of `items` items (uniform i32) that need not wait for where it ends: bounds of
  /// its first segments, a lane each, and its elements where no other warp may store them. To be
  /// issued while the tile in front of it is folded. Lane-shaped, so that loops carry them.
  Builder::Values load_early(ValueId segment, ValueId element, ValueId items);
  /// Begins and ends of the tile's first segments as places, of what load_early() gave.
  Builder::Values near_early(const Builder::Values& early);
  /// Ends before item `diagonal` of a tile that begins at item `at` and segment `segment`: uniform
  /// i32, items of the stretch.
  ValueId next_segment(ValueId segment, ValueId at, ValueId diagonal, const Builder::Values& near);
  /// What becomes of 32 segments from `first` (uniform i64) on: lanes where `real` have one that
  /// ends in the tile, of `extent` (lane i64, where asked for), `cut` where it began before the
  /// stretch. All other lanes' states are not for anyone.
  struct Ended {
    ValueId first = kNoValue, real = kNoValue, cut = kNoValue, extent = kNoValue;
    Partials states{};
  };
  using Sink = std::function<void(const Ended&)>;
  /// Values of elements: of a load, `values` of each fold's scan, and where its first element is
  /// (`at`, for lanes `stride` apart). Of those elements `counts` has results: a boolean a lane for
  /// each.
  struct Scanned {
    const Loaded* load = nullptr;
    std::vector<ValueId> values{};
    ValueId at = kNoValue;
    int stride = 1;
    std::vector<ValueId> counts{};
    ValueId extent = kNoValue;  ///< elements of their segments, where elements read that
  };
  using ElementSink = std::function<void(const Scanned&)>;
  using Going = PathGoing::Going;
  PathGoing& going() { return going_; }
  /// Folds the tile and hands over what ends in it, and of scans what its elements have. `going` is
  /// of the segment that the tile's first element belongs to. Returns the same behind the tile.
  Going fold(const Span& span, const Going& going, const Sink& ended,
             const ElementSink& scanned = nullptr);

 private:
  /// One row's elements, lane by lane.
  struct Row {
    std::vector<Loaded> loads;
    ValueId flags = kNoValue;    ///< those of a lane's elements, bytes
    std::vector<ValueId> heads;  ///< one an element of a lane: lane booleans
    ValueId has_head = kNoValue;
    /// Where elements ask how far from their segment's begin they are: the place in the tile of the
    /// last head before a lane's elements, and of the last one of the row or before it; -1: there
    /// is none.
    ValueId place_before = kNoValue, place_behind = kNoValue;
    /// Where they ask how far from its end: that of the first head behind a lane's elements, the
    /// place behind the tile if there is none.
    ValueId place_after = kNoValue;
  };
  /// What rows of a tile hand on: the state since the last head, and the place of the last head.
  struct Carry {
    Going going;                 ///< of rows as a stretch has it of tiles
    ValueId head_at = kNoValue;  ///< i32, in all lanes; where indices are asked for
    ValueId gap = kNoValue;      ///< whether elements are of no segment, in all lanes; of scans
  };
  Partials fold_ends(const Span& span, const Partials& open, const Sink& ended);
  /// A tile that one segment fills.
  Going fold_quiet(const Span& span, const Going& going);
  void mark_heads(const Span& span);
  void fold_rows(const Span& span);
  void fold_row(ValueId row, const Span& span, Carry& carry);
  void scan_row(ValueId row, Row& loaded, Carry& carry);
  /// Whether each of a lane's elements is of no segment, and what the next row begins with.
  std::vector<ValueId> gaps_of(const Row& loaded, ValueId earlier, ValueId last, Carry& carry);
  void hand_over_elements(ValueId row, const Row& loaded,
                          const std::vector<std::vector<Partial>>& states, const Partials& before,
                          const std::vector<ValueId>& gaps);
  void find_heads(ValueId row, Row& loaded);
  void load_row(ValueId row, const Span& span, Row& loaded, ValueId head_at);
  /// Where the loads of a tile that has this element first begin.
  ValueId base_of(ValueId element);
  Builder::Values load_anywhere(ValueId first, ValueId end);
  /// An offset as a place of the stretch: one before it, or kFar, for what lies further off.
  ValueId near_of(ValueId offset);
  ValueId place_of(ValueId near, const Span& span);
  /// Begins and ends of 32 segments from `first` on, a lane each: as places.
  Builder::Values near_at(ValueId first, const Span& span);
  Builder::Values bounds_from(ValueId segment);
  ValueId extents_at(ValueId first, const Span& span);
  /// An element and a segment of the stretch as what they are of all, i64.
  ValueId in_all(ValueId element) { return b_.add(origin_, i64_of(element)); }
  ValueId of_all(ValueId segment) { return b_.add(origin_segment_, i64_of(segment)); }
  Builder::Values load_own(ValueId row, const std::vector<std::size_t>& used);
  /// The place in the tile of a lane's first element in a row, i32.
  ValueId first_of_lane(ValueId row);
  void find_places(ValueId row, Row& loaded, ValueId head_at);
  void find_last(ValueId row, Row& loaded, ValueId head_at);
  void find_next(ValueId row, Row& loaded);
  /// What lies ahead of the tile's first element in its segment, and behind its last one.
  void find_ahead(const Span& span);
  /// How many elements of their segments come before each of a load's, and how many behind it.
  ValueId before_each(ValueId row, int load, const Row& loaded);
  ValueId behind_each(ValueId row, int load, const Row& loaded);
  /// The indices in their segments of a load's elements, and their segments' lengths.
  ValueId positions_of(ValueId row, int load, const Row& loaded) {
    return mirrored_ ? behind_each(row, load, loaded) : before_each(row, load, loaded);
  }
  ValueId extents_of(ValueId row, int load, const Row& loaded);
  /// Whether a lane's element begins a segment, or is behind the tile's last one of them.
  ValueId begins_in_tile(ValueId row, int element, const Row& loaded);
  Partials hand_over(const Span& span, const Partials& open, const Sink& ended);
  /// Of what comes before and behind in the order in which elements are counted.
  Partial merge(std::size_t fold, const Partial& a, const Partial& b) {
    return mirrored_ ? tile_.merge(fold, b, a) : tile_.merge(fold, a, b);
  }
  Partial from_lane(const Partial& part, ValueId lane);
  ValueId i32_of(ValueId value) { return b_.convert(value, DType::i32); }
  ValueId i64_of(ValueId value) { return b_.convert(value, DType::i64); }
  Builder::Values flatten(const Carry& carry);
  Carry unflatten(Builder::Values values);

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  const Plan& plan_;
  SegmentBounds& bounds_;
  bool pairs_, mirrored_;
  bool early_elements_;  // rows of their own, of a tile that is one row
  PathGoing going_;
  ValueId elements_, segments_;
  ValueId origin_ = kNoValue, origin_segment_ = kNoValue;  // what places are counted from, i64
  ValueId stretch_first_ = kNoValue;                       // the place of its first element, i32
  // Elements and segments from there on, as far as 32 bits reach.
  ValueId near_elements_ = kNoValue, near_segments_ = kNoValue;
  int flags_ = 0;               // an array of bytes, one an element and one behind them
  StateArrays own_, before_;    // a state an element, and one a lane
  ValueId base_ = kNoValue;     // the tile's first element, on a load's boundary
  ValueId goes_on_ = kNoValue;  // whether the tile's first element is of a segment from before
  ValueId first_ = kNoValue;    // the place of that element in the tile, i32
  ValueId behind_ = kNoValue;   // that behind its last one
  bool asks_before_, asks_behind_, asks_extent_;  // how many elements of their segments are where
  bool asks_lengths_;                             // how many segments have
  ValueId ahead_ = kNoValue;   // elements of the first one's segment before it, i64
  ValueId beyond_ = kNoValue;  // elements of the last one's segment behind the tile, i64
  const Partials* open_ = nullptr;
  const ElementSink* scanned_ = nullptr;
};

}  // namespace chainfold::codegen
