// ScanRow: the prefixes of one row, which is one load of every lane of a warp, side by side in
// memory.
//
// Within a lane prefixes come from the fewest merges with which the lane's fold, which others wait
// for, has log2 steps. That is Brent and Kung's scan (1982): eleven merges for eight elements.
// Across lanes they come from log2(32) exchanges (Kogge and Stone, 1973). Where lanes are those of
// vectors they come from a tree, whose steps take one lane for a whole run (Sklansky, 1960). What
// came before the row (the carry) is merged in front.
//
// Where segments begin within rows, a merge happens only if the segment of its right side reaches
// back to its left side. The position of an element within its segment tells that. So any segment
// size is served by the same code, and what positions tell while the program is written costs
// nothing.
//
// On tensor cores (Unit::mma_scan) prefixes come a quad of lanes at once (lower/tile/quads.hpp).
// Exchanges are then among eight quads instead of 32 lanes. A product of 0 and NaN is NaN, so lanes
// do a row with an element that is not finite. A vote tells that before anything is added to the
// quads' sums.
//
// Merges of compensated states take as long as eleven additions and wait for each other. So what
// comes before a row is added up as plain values from the state and the few rows since it was
// taken. The state is merged once in so many rows (kRowsAState).
//
// Backward scans are the same in mirrored order: the first element is a lane's last one, the first
// lane the 32nd. Merges still have the earlier element of memory on their left.
#pragma once

#include <optional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

/// What comes before a row: a state, and the plain fold of the rows since it was taken.
struct RowCarry {
  std::optional<Partial> state{};
  std::optional<Partial> rows{};
  int count = 0;  ///< of those rows
};

/// What comes before a load of a lane whose run of loads is scanned by itself. It is a state and
/// the fold of the loads since that was taken. Where the fold has values, both are also there as
/// the value that goes on.
struct LaneCarry {
  Partial state;
  std::optional<Partial> loads{}, value{};
  int count = 0;  ///< of those loads
};

class ScanRow {
 public:
  /// `segment`: where segments begin within rows, their size, and rows are given their places in
  /// them; 0: all rows are of one segment. `folds_reverse`: in which order rows come whose folds
  /// are carried along; scans tell theirs.
  ScanRow(Builder& builder, TileLowering& tile, const Graph& graph, std::int64_t segment,
          bool folds_reverse = false);

  /// Slots count from the place `origin` (i32, uniform) of a segment from now on.
  void begin_at(ValueId origin) { origin_ = origin; }
  /// What is known of rows behind begin_at(). `nothing`: each row's branch asks. `of_one`: they go
  /// on with the segment before them. `asked`: a branch around them has asked, so that they do not.
  /// The exchanges of several rows may then run side by side.
  enum class Known : std::uint8_t { nothing, of_one, asked };
  void know(Known known) { known_ = known; }
  [[nodiscard]] bool of_one() const { return known_ == Known::of_one; }
  /// Whether `row` elements from slot `first` on go on with the segment before them, to its end
  /// (boolean, uniform).
  ValueId within_one(std::int64_t first, std::int64_t row, bool reverse);
  /// The scan of fold `fold` over a row: a value an element of each lane. `elements` are the
  /// fold's partials of the elements by themselves (TileLowering::fold_elements); `first` is the
  /// slot of the row's first element, counted from where a segment begins. `carry` is what comes
  /// before the row, or nothing, and becomes what comes before the next.
  ValueId scan(std::size_t fold, const Partial& elements, int width, std::int64_t first,
               RowCarry& carry);
  /// The same of a loaded row, by the fold's unit.
  ValueId scan(std::size_t fold, const Loaded& row, std::int64_t first, RowCarry& carry);
  /// The state of all that comes before the next row.
  std::optional<Partial> settled(std::size_t fold, const RowCarry& carry);
  /// Loaded rows that are all of one segment, in the scan's order: to values[r][f]. `states`, one a
  /// fold, are those of what comes before the rows, and become those of what comes before the next.
  /// `batched` is for folds whose values are merged at less cost than states. What comes before
  /// each row within these is added up first. The state, whose merges wait for each other, is
  /// merged once.
  std::vector<std::vector<ValueId>> scan_range(const std::vector<Loaded>& loaded, Partials& states,
                                               bool batched);
  /// Of lanes whose runs of elements follow each other, and whose folds are `total`: what comes
  /// before each lane. `all` becomes the fold of them all, in every lane.
  Partial before_lanes(std::size_t fold, const Partial& total, Partial& all);
  /// The scan of fold `fold` over a load of each lane's own run, of `width` elements; `elements` as
  /// for scan(). An element's prefix is what comes before the load, merged with runs of its
  /// elements. The binary digits of the element's number name the runs, longest first (Fenwick,
  /// 1994). So the merges which follow each other are few, and few in all: fifteen for eight
  /// elements.
  ValueId scan_in_lanes(std::size_t fold, const Partial& elements, int width, LaneCarry& carry);
  /// The merge of two states that follow each other in the direction of the scan.
  Partial merge(std::size_t fold, const Partial& earlier, const Partial& later, bool reverse);

 private:
  /// How segments lie in lanes.
  enum class Heads : std::uint8_t { none, inside_lanes, between_lanes, anywhere };
  [[nodiscard]] Heads heads(int width) const;
  /// The position of the i-th element of each lane within its segment, both in the scan's
  /// direction.
  ValueId place(int i, int width, std::int64_t first, bool reverse);
  ValueId lane_place(int width, std::int64_t first, bool reverse);  ///< the same of the first one
  /// A position below twice the segment's size.
  ValueId wrapped(ValueId position);
  /// Whether no segment begins at a lane's elements (after, upto] in the scan's order; kNoValue:
  /// none does in any lane.
  ValueId no_head(int after, int upto, int width, std::int64_t first, bool reverse);
  ValueId lane_in_order(bool reverse);
  Partial shuffled(const Partial& part, int distance, bool reverse);
  /// Each lane has the state of lane lanes[l].
  Partial permuted(const Partial& part, const std::vector<std::uint8_t>& lanes);
  Partial broadcast_last(const Partial& part, bool reverse);
  Partial choose(std::size_t fold, ValueId condition, const Partial& a, const Partial& b);
  /// Each element of a load by itself, in the scan's order.
  std::vector<Partial> in_order(const Partial& elements, int width, bool reverse);
  /// A scan over the lanes' totals, of units of `unit` lanes that hold the same, each of which
  /// stands for `width` elements a lane; `first` as for scan().
  struct LaneScan {
    int unit = 1, width = 1;
    std::int64_t first = 0;
    /// Elements of its segment and of the row that come before a lane's last one; kNoValue: all.
    ValueId before_last = kNoValue;
    bool reverse = false;
  };
  /// Whether a fold's states are places that are merged in order.
  [[nodiscard]] bool scans_places(std::size_t fold) const;
  /// Whether a place is scanned only in rows that have a better value (PlanHints::screens).
  [[nodiscard]] bool screens_rows(std::size_t fold) const {
    return tile_.screens() && scans_places(fold);
  }
  ValueId scan_places(std::size_t fold, const Partial& elements, int width, std::int64_t first,
                      RowCarry& carry);
  /// Each lane's total behind those of the lanes before it.
  Partial across_lanes(std::size_t fold, Partial total, const LaneScan& scan);
  /// The same of a fold with Fold::place that is merged in order, where lanes without elements
  /// follow those that have some.
  Partial places_across_lanes(std::size_t fold, const Partial& total, const LaneScan& scan);
  [[nodiscard]] bool fills_lanes(std::size_t fold, const LaneScan& scan) const;
  /// The distances of its steps, by shifts (Kogge and Stone) or by halves (Sklansky).
  [[nodiscard]] std::vector<int> shifts(const LaneScan& scan) const;
  [[nodiscard]] std::vector<int> halves(const LaneScan& scan) const;
  std::vector<Partial> within_lanes(std::size_t fold, const Partial& elements, int width,
                                    std::int64_t first, bool reverse);
  /// Prefixes of elements among those of a lane, or of a quad.
  struct Prefixes {
    std::vector<Partial> values;   ///< in the scan's order
    std::optional<Partial> first;  ///< of a quad: what of it comes before the lane's first element
    Partial total;                 ///< of the lane or quad, in each of its lanes
    int lanes = 1;
    bool alone = false;  ///< segments lie within
  };
  /// Of quads, on tensor cores or by lanes.
  Prefixes within_quads(std::size_t fold, const Loaded& row, std::int64_t first);
  Prefixes within_quads_by_lanes(std::size_t fold, const Loaded& row, std::int64_t first,
                                 int lanes);
  ValueId join(std::size_t fold, Prefixes prefixes, int width, std::int64_t first, RowCarry& carry);
  /// Whether a sum's states are values of a wider type.
  [[nodiscard]] bool has_wider_state(std::size_t fold) const;
  /// Whether what comes before a row may be added up as plain values. Then the fields of a state
  /// are what its value is the fold of.
  [[nodiscard]] bool adds_values(std::size_t fold) const;
  /// Whether that is so, and states are no such values themselves, which merge at the same cost.
  [[nodiscard]] bool states_cost_more(std::size_t fold) const;
  /// Plain values, if any, behind a state of such a fold: one value.
  Partial behind_state(std::size_t fold, const Partial& state, std::optional<Partial> rows);
  /// `part`, of a row, behind what comes before that; one value where both are plain.
  Partial behind(std::size_t fold, const RowCarry& carry, const Partial& part);
  /// Takes account of a row whose last lane's prefix is `last`.
  void pass(std::size_t fold, RowCarry& carry, const Partial& last, std::int64_t first,
            std::int64_t row);
  /// The state of what comes before the row behind one that ends with `last`.
  Partial carry_behind(std::size_t fold, const std::optional<Partial>& carry, const Partial& last,
                       std::int64_t first, std::int64_t row);
  ValueId scan_row(std::size_t fold, const Loaded& row, std::int64_t first, RowCarry& carry);
  /// A row of a range: every fold's partials of its elements by themselves.
  struct Row {
    Partials elements;
    int width = 1;
  };
  /// The prefixes of a row's elements among those of the row, as many a lane as it has. `follows`:
  /// whether a lane is not the first.
  Prefixes within_row(std::size_t fold, const Partial& elements, int width, ValueId follows);
  std::vector<ValueId> scan_batch(std::size_t fold, const std::vector<Row>& rows, Partial& state);
  /// `behind_state`: a state's value comes before all of them.
  ValueId finished(std::size_t fold, const std::vector<Partial>& values, bool reverse,
                   bool behind_state = false);

  Builder& b_;
  TileLowering& tile_;
  const Graph& graph_;
  std::int64_t segment_;
  ValueId origin_ = kNoValue;
  Known known_ = Known::nothing;
  std::vector<bool> reverse_, exclusive_;  // one a fold
};

}  // namespace chainfold::codegen
