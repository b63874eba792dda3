// ScanTiles: the blocks of a scan whose segments take several of them, or all elements in one.
//
// A tile is what a block handles: `warps` runs of elements. Tiles are counted in the scan's
// direction, from the segment's first one (its last one, of backward scans). With heads
// (ScanPlan::heads) they are counted over all segments, one behind the other.
//
// Tickets number tiles segment by segment. Interleaved tickets (ScanPlan::interleaved) number them
// group by group of so many segments, the last group of as many as are left. Within a group come
// the first tiles of its segments, then their second ones. So neighbours of a segment are as many
// tickets apart as the group has segments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "chainfold/codegen/base/size_expr.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/blocked.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

/// Parameters of programs over tiles, and how many tiles there are.
struct TileParams {
  int elements = 0, segments = 0;
  SizeExpr tiles;                      ///< a segment, or of all where tiles are of all segments
  [[nodiscard]] SizeExpr all() const;  ///< of all segments
  SizeExpr segment_count;              ///< as many times `tiles`
  /// Of a launch that stores an element for each of the inputs'.
  [[nodiscard]] NonTemporalStores streams(const Graph& graph, const Plan& plan,
                                          const Target& target) const;
  /// Scans of the whole input go on from launch to launch: buffers of states, and whether they are
  /// there.
  int carry_in = -1, carry_out = -1, has_carry_in = -1, has_carry_out = -1;
};
class ScanTiles {
 public:
  ScanTiles(Builder& builder, const Graph& graph, const Plan& plan, const TileParams& params);

  /// Elements of a segment (i64).
  ValueId extent();
  /// Tiles are counted from 0 so many times, as many each time: for each segment, or once (i64).
  ValueId counts();
  ValueId tiles();
  /// Works on tile `number` (i64) of all segments from now on; a ticket, if tiles are taken by
  /// them.
  void place(ValueId number);
  /// Tickets between two tiles of the segment of which one is `tiles` (i64) behind the other.
  ValueId tickets(ValueId tiles) { return side_ == kNoValue ? tiles : b_.mul(tiles, side_); }
  /// The warp's run of it: the first element, and how many there are (with before_).
  [[nodiscard]] ValueId begin() const { return begin_; }
  [[nodiscard]] ValueId count() const { return count_; }
  /// From now on plan.staged rows of the run come from shared memory, once for the fold and once
  /// for the scan. They come by copies of the caller's (ScanRing), so that a tile may be folded
  /// before another one is scanned. Or they come by copies of `ring`, for a block of one tile.
  void read_from_stage() { staged_ = plan_.scan.staged_rows; }
  void read_through(ScanRing& ring) {
    staged_ = plan_.scan.staged_rows;
    ring_ = &ring;
    if (plan_.scan.blocked) blocked_.emplace(b_, graph_, plan_, scan_, ring);
  }
  /// The tile's number: which count it belongs to, and its index there.
  [[nodiscard]] ValueId segment() const { return segment_; }
  [[nodiscard]] ValueId index() const { return index_; }
  /// The first tile of what comes before the tile and belongs to its first segment; kNoValue: 0.
  [[nodiscard]] ValueId origin() const { return origin_; }
  /// The fold that tiles hand on which end with this one: `before`, of those before it, and `own`.
  Partials join(Partials before, const Partials& own);

  /// place() and total().
  Partials total_of(ValueId number) {
    place(number);
    return total();
  }
  /// Loads the tile and folds the warp's run: with heads, the segment that goes on behind it.
  Partials total();
  /// Scans the run behind `carry`, which covers all that comes before it, and stores its elements'
  /// outputs; `folded` as for ScanTile.
  void scan(const Partials& carry, const std::vector<ValueId>& folded);
  /// The first warp of the last tile of a segment stores what is left of it, from its folds. These
  /// are the segment's outputs, and the states with which a later launch goes on.
  void store_folds(const std::function<Partials()>& folds);

  /// The states of what an earlier launch has scanned before all of this one, or identities.
  Partials carried_in();
  /// Hands states over to a later launch that asks for them.
  void carry_out(const Partials& states);

  [[nodiscard]] ScanTile& run() { return scan_; }

 private:
  /// Tells of which segment the tile is, of `all` tiles each, and which one of it.
  void place_across(ValueId number, ValueId all);
  /// Tells where segments begin in the tile, which begins at element `tile_at` of `all` tiles.
  void place_heads(ValueId tile_at, ValueId all);
  /// Elements that tiles are of (i64).
  ValueId elements();
  /// Rows of a run: `rows` of them from row `first` on.
  struct Span {
    int first, rows;
  };
  /// Those in registers, which are scanned first and leave theirs to what is made of the others.
  [[nodiscard]] Span kept() const { return {scan_.reverse() ? staged_ : 0, plan_.depth - staged_}; }
  [[nodiscard]] Span staged() const {
    return {scan_.reverse() ? 0 : plan_.depth - staged_, staged_};
  }
  [[nodiscard]] std::int64_t elements_of(int rows) const { return rows * scan_.row_elements(); }
  /// Elements of the run from the span's row on, where some of them may not be there, else
  /// kNoValue.
  ValueId count_from(Span span);
  /// What `rows` makes of a tile that may not be all there. That is the last tile of a segment or
  /// of the whole input (ScanPlan::ragged). It is also the first one of a segment that begins
  /// within a load.
  Builder::Values of_masked(const std::function<Builder::Values()>& rows);
  /// Whether the rows that code is made for end anywhere, and not with whole loads.
  [[nodiscard]] bool ends_anywhere() const {
    const bool anywhere = plan_.is_whole() ? plan_.load_width > 1 : begins_in_loads(plan_);
    return anywhere && (of_masked_ || !plan_.scan.ragged);
  }
  /// `rows` rows of the stage from element `offset` (i64) of it on, of which `count` exist.
  std::vector<Loaded> load_staged(ValueId offset, ValueId count, ValueId place, int rows);
  /// Where the span's elements begin: in the input, and in the segment.
  ValueId begin_of(Span span) { return b_.add(begin_, b_.i64(elements_of(span.first))); }
  ValueId place_of(Span span) { return b_.add(at_, b_.i64(elements_of(span.first))); }
  /// Whether rows in registers are folded and scanned by quick folds first.
  [[nodiscard]] bool has_quick_rows() const;
  /// The warp's elements.
  struct Run {
    ValueId begin = kNoValue, count = kNoValue, place = kNoValue;
  };
  Run whole_run();
  /// Their fold as a range.
  Partials fold_range();
  /// Brings the run's rows, leaves those of registers in rows_, and folds all.
  Partials fold_rows();
  /// The same of a whole run in a blocked arrangement, which leaves before_lanes_, too.
  Partials fold_blocked();
  void scan_blocked(const Partials& carry);
  [[nodiscard]] BlockedRun::Span blocked(Span span) {
    return {.begin = begin_of(span), .place = place_of(span), .rows = span.rows};
  }
  void start_copies();
  std::vector<Loaded> load_kept();
  [[nodiscard]] std::vector<Loaded> kept_rows(int first, int rows) const;
  /// Of so many rows those that one question about heads serves.
  [[nodiscard]] int together(int rows) const;
  /// Adds the folds of the run's rows from `first` on.
  void fold_loaded(const std::vector<Loaded>& rows, int first, RowTotals& folded);
  /// Scans the rows behind `carry`.
  void scan_rows(Partials carry, const std::vector<ValueId>& folded);
  /// Scans loaded rows, from element `offset` (i64) of the span on.
  Carry scan_loaded(const std::vector<Loaded>& rows, Span span, ValueId offset,
                    const Partials& carry, const std::vector<ValueId>& folded);
  void scan_staged(const Partials& carry, const std::vector<ValueId>& folded);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  TileParams params_;
  ScanTile scan_;
  int staged_ = 0;  // rows of a run
  ScanRing* ring_ = nullptr;
  std::optional<BlockedRun> blocked_;  // plan.blocked: of whole runs
  Builder::Values before_lanes_;       // BlockedRun::Folded::before
  std::vector<Loaded> rows_;           // kept()
  ValueId serves_ = kNoValue;          // whether quick folds serve a lane's elements
  ValueId segment_ = kNoValue, index_ = kNoValue;
  ValueId side_ = kNoValue;  // across segments: how many the tile's group has
  ValueId full_ = kNoValue;  // whether the tile's rows are all there
  bool of_masked_ = false;   // whether code is made for such tiles alone
  // With heads: the segment of the tile's first element, whether it is that of all, and origin().
  ValueId first_ = kNoValue, of_one_ = kNoValue, origin_ = kNoValue;
  /// Of the warp's run: its first element, its place in the segment, and how many elements. Where a
  /// segment begins within a load, `before_` of them (i32; kNoValue: 0) come before the segment and
  /// are not meant. The place is negative then.
  ValueId begin_ = kNoValue, at_ = kNoValue, count_ = kNoValue, before_ = kNoValue;
};

}  // namespace chainfold::codegen
