// ScanTile: what the strategies of scans are made of. A warp's run of elements is folded and then
// scanned. Its rows stay in registers between the two (a tile), or it is of any length and read
// twice, row by row (a range).
//
// Every state here is lifted and the same in all lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/row.hpp"
#include "chainfold/codegen/lower/tile/row_totals.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

using Carry = OptionalPartials;
class ScanTile {
 public:
  /// `segment`: as for ScanRow.
  ScanTile(Builder& builder, const Graph& graph, const Plan& plan, std::int64_t segment);

  [[nodiscard]] TileLowering& tile() { return tile_; }
  [[nodiscard]] ScanRow& row() { return row_; }
  /// Elements of plan.depth rows.
  [[nodiscard]] std::int64_t elements() const { return row_elements() * plan_.depth; }
  [[nodiscard]] std::int64_t row_elements() const {
    return std::int64_t{kWarpWidth} * plan_.load_width;
  }
  /// Whether elements have a fold's running value.
  [[nodiscard]] bool is_scan(std::size_t fold) const { return is_scan_[fold]; }
  /// The direction of a fold's scan.
  [[nodiscard]] bool reverse(std::size_t fold) const { return reverse_[tile_.own(fold)]; }
  /// The direction of ranges, whose scans have one, and in which tiles are counted: forward where
  /// there are scans of both directions.
  [[nodiscard]] bool reverse() const { return ranges_reverse_; }
  /// The direction in which a fold's states are merged from tile to tile.
  [[nodiscard]] bool merges_backward(std::size_t fold) const {
    return ranges_reverse_ || reverse_[fold];
  }
  /// The merge of states that follow each other in that direction.
  Partial merge(std::size_t fold, const Partial& earlier, const Partial& later) {
    return row_.merge(fold, earlier, later, merges_backward(fold));
  }
  Partials merge(const Partials& earlier, const Partials& later);
  [[nodiscard]] Carry no_carry() const { return Carry(graph_.folds.size()); }
  [[nodiscard]] Carry carry_of(const Partials& states) const {
    return {states.begin(), states.end()};
  }
  /// The same the other way, of carries that every fold has.
  [[nodiscard]] static Partials states_of(const Carry& carry);

  /// plan.depth rows from element `begin` (i64) on, of which `count` elements (i64; kNoValue: all)
  /// exist. `place`: the position of the first element in its segment (i64), where rows have one.
  std::vector<Loaded> load(ValueId begin, ValueId count, ValueId place) {
    return load(begin, count, place, plan_.depth);
  }
  std::vector<Loaded> load(ValueId begin, ValueId count, ValueId place, int rows);
  /// The position of the first element of each lane of row r of the same, where rows have one.
  ValueId row_position(ValueId place, int r);
  /// The lanes of row r of the same that hold elements.
  ValueId row_mask(ValueId count, int r);
  /// The fold of loaded rows, or of what they are folded to.
  Partials total(const std::vector<Loaded>& rows);
  Partials total(RowTotals folded);
  /// The rows of a run of `count` (i64) elements, any number, at `place` as for load(). They are
  /// whole loads, and the elements of the one that is not all there one by one. The first `before`
  /// (i32; kNoValue: 0) of them are none of the run's: fewer than a load, of runs with a whole one.
  std::vector<Loaded> load_ending(ValueId begin, ValueId count, ValueId place, int rows,
                                  ValueId before = kNoValue);
  /// The rows of a run of `count` (i64) elements, perhaps fewer than none, behind which whole
  /// segments end. What stands behind them belongs to no segment of theirs. For scans of both
  /// directions, which no range has.
  std::vector<Loaded> load_whole(ValueId begin, ValueId count, ValueId place);
  /// Tells row r of such a run, where zeros are read in place of others, which elements exist.
  void mark_existing(Loaded& row, int r, ValueId count, ValueId before = kNoValue);
  /// The same of rows where anything is.
  void keep_existing(std::vector<Loaded>& rows, ValueId count);
  /// Segments begin anywhere in rows from now on. The warp's run and its rows are at slot `run`,
  /// its block is at slot `block` (i32, uniform; kNoValue: 0). Slots count from a head that is not
  /// behind the block. Without this call rows begin at a head.
  void begin_at(ValueId run, ValueId block = kNoValue);
  /// The rows that come next begin `slots` (i32, uniform) behind the run's beginning.
  void go_to(ValueId slots) { rows_at(b_.add(run_slot_, slots)); }
  [[nodiscard]] bool begins_anywhere() const { return run_slot_ != kNoValue; }
  /// Behind begin_at(): elements of the segment that goes on over the edge before slot `slot` which
  /// come before it in a direction.
  ValueId open_at(ValueId slot, bool backward);
  [[nodiscard]] ValueId run_slot() const { return run_slot_; }
  [[nodiscard]] ValueId block_slot() const { return block_slot_; }
  /// The fold of what loaded rows, behind begin_at(), have of the segment that goes on behind them
  /// in each scan's direction. The same in steps: of each of the run's rows from `first` on that
  /// may have something of it in a direction. Folds of the other direction have nothing.
  Partials total_of_open_segment(const std::vector<Loaded>& rows);
  std::vector<Partials> fold_open_rows(const std::vector<Loaded>& rows, int first, bool reverse);
  /// Stores the elements' outputs of loaded rows of one segment, and gives the carry behind them.
  /// `extent` (i64): of their segment; `folded`: as values_of tells. `count` (i64; kNoValue: those
  /// of the rows' masks) elements exist, but for the first `before` as for load_ending().
  Carry scan(const std::vector<Loaded>& rows, ValueId begin, Carry carry, ValueId extent,
             const std::vector<ValueId>& folded, ValueId count = kNoValue,
             ValueId before = kNoValue);
  /// Stores all outputs of loaded rows of whole segments, the first one of which (of the block, if
  /// rows are behind begin_at()) is `first` (i64); `count` as for load(), in whole loads, or any
  /// number where rows were loaded without it. `carry`: the states of what comes before the rows,
  /// which become those of what comes behind them.
  Carry scan_segments(const std::vector<Loaded>& rows, ValueId begin, ValueId count, ValueId first,
                      Carry carry);
  /// Whether segments of loaded rows that quick folds do not serve are scanned as ranges, since
  /// their rows are much code.
  [[nodiscard]] bool leaves_segments() const;
  /// scan_segments() from nothing by quick folds where these serve all lanes. Whether they do, a
  /// boolean: else nothing is stored.
  ValueId scan_quick_segments(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                              ValueId first);
  /// The same of rows that one question serves: most of them have no heads, nor the memory's end.
  Carry scan_together(const std::vector<Loaded>& rows, ValueId begin, ValueId count, ValueId first,
                      const Partials& carry);
  /// The values of folds that are broadcast (kNoValue for others), from folds of whole segments.
  std::vector<ValueId> values_of(const Partials& folds);
  /// Stores the outputs of segment `segment` (i64), from its folds, by one lane.
  void store_folds(const Partials& folds, ValueId segment, ValueId extent);

  /// The fold of the `count` elements from `begin` on, and their scan behind `carry`, which gives
  /// the fold of both; `place` as above.
  Partials total_of_range(ValueId begin, ValueId count, ValueId place);
  Partials scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                      ValueId extent, const std::vector<ValueId>& folded);

  /// From now on loads of ranges that are scanned prefetch the elements so many (uniform i64)
  /// behind.
  void read_ahead(ValueId elements) { ahead_ = elements; }

  /// The segments [first, behind) (i64) of launches with non-temporal stores, one after the other,
  /// as scan_range() does. Rows begin with lines of memory: the row in which one segment ends and
  /// the next begins is stored once. Segments have more elements than a row.
  void scan_on_lines(ValueId first, ValueId behind);

 private:
  class Range;
  /// scan() and scan_segments() by the folds that the tile folds by now, of which carries are.
  Carry scan_either(const std::vector<Loaded>& rows, ValueId begin, Carry carry, ValueId extent,
                    const std::vector<ValueId>& folded, ValueId count, ValueId before);
  Carry scan_segments_either(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                             ValueId first, Carry carry);
  Partials open_segment_either(const std::vector<Loaded>& rows);
  Partials fold_rows(const std::vector<Loaded>& rows);
  /// The state of what comes before a range behind these and `totals`.
  Partial behind(std::size_t fold, const Carry& carry, const Partials& totals);
  /// The outputs of elements among all, of a row of one element a lane, and their stores to such a
  /// row on a line. `mask`: as for stores.
  Builder::Values of_elements(const std::vector<ValueId>& outputs);
  void store_seam(ValueId at, const Builder::Values& outputs, ValueId mask);
  /// Where rows end: the loads that are all there, and how many elements the load behind them has
  /// (i32). Of each output, the values of that load in the lane that has it. Where rows begin: how
  /// many of the first load's elements are not theirs (i32; kNoValue: 0).
  struct Ending {
    ValueId loads = kNoValue, rest = kNoValue, before = kNoValue;
    std::vector<ValueId> values{};
  };
  /// Of `count` (i64) elements, perhaps fewer than none.
  Ending ending_of(ValueId count, ValueId before);
  /// The loads of row r that are all there, by their numbers.
  ValueId whole_loads(const Ending& ending, int r, ValueId number);
  /// The lane of the first row that has element i of the first load, where that is not all there.
  ValueId has_first(const Ending& ending, int i);
  /// The first element behind the loads that are all there, of rows from element `begin` on.
  ValueId behind_loads(ValueId begin, const Ending& ending);
  /// The numbers of row r's loads, a lane.
  ValueId loads_of_row(int r);
  /// Stores row r's loads that are all there, and keeps the values of the one that is not.
  void store_existing(const Loaded& row, int r, ValueId at, const Broadcasts& values,
                      ValueId extent, Ending& ending);
  /// Stores these, of `rows` rows.
  void store_rest(ValueId begin, int rows, const Ending& ending);
  /// Lanes of a row of `width` elements each, from element `slot` on, before element `count`.
  ValueId mask_from(int width, std::int64_t slot, ValueId count);
  Loaded load_row(TileLowering& tile, int width, ValueId begin, std::int64_t slot, ValueId count,
                  ValueId position);
  /// The running values of all folds, row by row: `done` gets a row's number and values before the
  /// next row begins, so that few of them are there at once. Some folds are broadcast where
  /// segments begin anywhere in rows (spreads_). Of these each element gets its segment's, and
  /// those of all rows come first.
  void scan_rows(const std::vector<Loaded>& rows, Carry& carry,
                 const std::function<void(std::size_t, Broadcasts)>& done);
  ValueId ahead_of_scan();
  /// `lines`: rows begin with lines of memory, so that outputs may be stored by non-temporal
  /// stores. `left` (i64): how many of the row's elements exist; kNoValue: those of its mask.
  void store_row(TileLowering& tile, const Loaded& row, ValueId at, const Broadcasts& values,
                 ValueId extent, bool lines, ValueId left = kNoValue);
  void store_values(const Loaded& row, ValueId at, const std::vector<ValueId>& outputs, bool lines);
  /// The same of the row in which the memory ends: one element a lane at a time.
  void store_ending(const Loaded& row, ValueId at, const std::vector<ValueId>& outputs,
                    ValueId left);
  void rows_at(ValueId slot);
  /// Stores what segments have that end in a row: where they end, `running` values are the whole's.
  void store_ends(const Loaded& row, int r, const std::vector<ValueId>& running, ValueId count,
                  ValueId first);
  /// Of each element the value where its segment ends, in rows that segments do not cross.
  ValueId broadcast_end(ValueId values, int width);
  /// The same of all rows, in which segments begin anywhere: of folds in spreads_, whose running
  /// values are there. Behind begin_at() contains a barrier, if there are any; only once on each
  /// way through the program.
  void spread_ends(std::vector<Broadcasts>& rows);
  /// Each lane's first slot of row r, counted from where the run or its block begins (lane i32).
  ValueId slots_of_row(std::size_t r);
  /// How far slot `first` of what begins at a head is from its segment's last one.
  ValueId left_of_segment(ValueId first);
  /// The value where a segment ends in a lane, `left` behind its first element, if one does.
  ValueId end_of_lane(ValueId values, ValueId left, int width);
  /// A lane's elements: `own` up to its segment's end, `next` behind it (kNoValue: there are none).
  ValueId broadcast_values(ValueId own, ValueId next, ValueId left, int width);
  void spread_in_warp(std::vector<Broadcasts>& rows, std::size_t f);
  void put_ends(const std::vector<Broadcasts>& rows, std::size_t f, int array);
  void get_ends(std::vector<Broadcasts>& rows, std::size_t f, int array);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  Plan range_plan_;  // of ranges
  std::int64_t segment_;
  ValueId slot_ = kNoValue, run_slot_ = kNoValue, block_slot_ = kNoValue;  // of rows, run, block
  // One a fold. asked_: it is broadcast; spreads_: so in rows in which segments begin anywhere.
  std::vector<bool> reverse_, is_scan_, asked_, spreads_;
  ValueId ahead_ = kNoValue;                        // read_ahead()
  bool ranges_reverse_ = false, has_ends_ = false;  // outputs with a value a segment
  int ends_ = -1;  // the first shared array of what folds are where the block's segments end
  TileLowering tile_, range_tile_;
  ScanRow row_, range_row_;
};

}  // namespace chainfold::codegen
