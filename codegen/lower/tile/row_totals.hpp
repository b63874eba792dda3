// The fold of rows that come one behind the other, one load of every lane each.
//
// Lanes of a row follow each other, and rows do, so folds that need their order cannot wait for a
// state a lane. Two rows of them are one as soon as both are there, by one exchange between lanes
// (TileLowering::pair_rows). Lanes whose bit k is clear keep the first row, the others the second.
// Each is merged with its neighbour over that bit. So 16 rows take 15 such merges and 5 more, where
// each by itself would take 5. What commutes keeps a state a lane.
#pragma once

#include <vector>

#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

class RowTotals {
 public:
  explicit RowTotals(TileLowering& tile) : tile_(tile), runs_(tile.count()) {}

  /// A row's folds, a partial a lane, behind all rows so far. Complete ones are taken as they are.
  void add(const Partials& row);
  /// The rows of `later`, behind those.
  void append(RowTotals later);
  /// The folds of all rows: complete where they need their order, else a partial a lane.
  Partials merged();

 private:
  /// Rows that were merged, each in the lanes whose lowest bits are its number; 0: they are
  /// complete, or each lane has something of all.
  struct Run {
    Partial part;
    int rows = 0;
  };
  void add(std::size_t fold, Run run);
  Partial finished(std::size_t fold, const Run& run);

  TileLowering& tile_;
  std::vector<std::vector<Run>> runs_;  // of each fold, in order
};

}  // namespace chainfold::codegen
