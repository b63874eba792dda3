// ScanTile: what the strategies of scans are made of. A warp's run of elements is folded and then
// scanned, either as a tile of rows that stay in registers between the two, or as a range of any
// length that is read twice, row by row.
//
// Every state here is lifted and the same in all lanes.
#pragma once

#include <optional>
#include <vector>

#include "chainfold/codegen/lower_scan_row.hpp"

namespace chainfold::codegen {

/// One state a fold, or none before anything was folded.
using Carry = std::vector<std::optional<Partial>>;

class ScanTile {
 public:
  /// `segment`: as for ScanRow.
  ScanTile(Builder& builder, const Graph& graph, const Plan& plan, std::int64_t segment);

  [[nodiscard]] TileLowering& tile() { return tile_; }
  [[nodiscard]] ScanRow& row() { return row_; }
  /// Elements of plan.depth rows.
  [[nodiscard]] std::int64_t elements() const { return row_elements() * plan_.depth; }
  /// All scans' direction; they have one.
  [[nodiscard]] bool reverse() const { return reverse_; }
  [[nodiscard]] Carry no_carry() const { return Carry(graph_.folds.size()); }
  [[nodiscard]] Carry carry_of(const Partials& states) const { return {states.begin(), states.end()}; }

  /// plan.depth rows from element `begin` (i64) on, of which `count` elements (i64; kNoValue: all)
  /// exist. `place`: the position of the first element in its segment (i64), where rows have one.
  std::vector<Loaded> load(ValueId begin, ValueId count, ValueId place);
  /// The position of the first element of each lane of row r of the same, where rows have one.
  ValueId row_position(ValueId place, int r);
  /// The fold of loaded rows.
  Partials total(const std::vector<Loaded>& rows);
  /// Stores the outputs of loaded rows. `extent` (i64): of their segment.
  void scan(const std::vector<Loaded>& rows, ValueId begin, Carry carry, ValueId extent);

  /// The fold of the `count` elements from `begin` on, and their scan behind `carry`; `place` as
  /// above. One element a lane at a time.
  Partials total_of_range(ValueId begin, ValueId count, ValueId place);
  void scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                  ValueId extent);

 private:
  [[nodiscard]] std::int64_t row_elements() const {
    return std::int64_t{kWarpWidth} * plan_.load_width;
  }
  Loaded load_row(TileLowering& tile, int width, ValueId begin, std::int64_t slot, ValueId count,
                  ValueId position);
  void store_row(TileLowering& tile, const Loaded& row, ValueId at,
                 const std::vector<ValueId>& scanned, ValueId extent);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  Plan narrow_;  // of ranges
  std::int64_t segment_;
  bool reverse_ = false;
  TileLowering tile_, narrow_tile_;
  ScanRow row_, narrow_row_;
};

}  // namespace chainfold::codegen
