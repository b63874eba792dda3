// ScanBlock: what the warps of a block tell each other in a scan. Their runs follow each other in
// memory in the order of the warps.
#pragma once

#include <vector>

#include "chainfold/codegen/lower_scan_tile.hpp"
#include "chainfold/codegen/lower_states.hpp"

namespace chainfold::codegen {

class ScanBlock {
 public:
  ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan);

  /// Every warp hands over the fold of its run. Contains a barrier; only once a launch. `lanes` (a
  /// power of two, no fewer than warps): as many hold the totals, the next ones the same again.
  void share(const Partials& totals, int lanes = kWarpWidth);
  /// The same in steps, for blocks of several tiles: declares room for the totals of so many of
  /// them; `at` (i64) is the room's first element.
  void declare(int tiles);
  void put(const Partials& totals, ValueId at);
  /// Behind a barrier.
  void get(ValueId at);
  /// The fold of the block's runs that come before the warp's own in each scan's direction. `of`:
  /// the lanes that hold what is wanted of them; kNoValue: all.
  Partials before_warp(ValueId of = kNoValue);
  /// The warp whose total a lane holds (lane i32).
  ValueId held();
  /// The fold of all runs.
  Partials all();

 private:
  Builder& b_;
  Program& program_;
  const Graph& graph_;
  ScanTile& scan_;
  StateArrays totals_;
  Partials own_;
  Partials of_warps_;  // lane l holds that of warp l % lanes_
  int lanes_ = kWarpWidth;
};

}  // namespace chainfold::codegen
