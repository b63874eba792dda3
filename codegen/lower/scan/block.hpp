// ScanBlock: what the warps of a block exchange in a scan. Their runs follow each other in memory
// in the order of the warps.
#pragma once

#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

class ScanBlock {
 public:
  /// `name`: what prints call the arrays that hold what warps share.
  ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan,
            std::string name = "total");

  /// Every warp hands over the fold of its run. Contains a barrier; only once on each way through
  /// the program.
  void share(const Partials& totals);
  /// The same in steps, for blocks of several tiles: declares room for the totals of so many of
  /// them; `at` (i64) is the room's first element.
  void declare(int tiles);
  void put(const Partials& totals, ValueId at);
  /// Behind a barrier.
  void get(ValueId at);
  /// The fold of the block's runs that come before the warp's own in each scan's direction. Where
  /// segments begin anywhere in runs, totals are those of the segments that go on behind the runs.
  /// This is then what those runs have of the segment that goes on in the warp's run.
  Partials before_warp();
  /// The fold of all runs, or of what they have of the segment that goes on behind the block.
  Partials all();
  /// Of `before`, the fold of what comes before the block, what comes before the warp's run:
  /// nothing where segments begin between the two.
  Partials reaching_warp(Partials before);

 private:
  /// The warp whose total a lane holds (lane i32).
  ValueId held();
  /// Whether the segment that goes on over the edge before slot `slot` reaches over `runs` runs
  /// before it (i32) in a direction.
  ValueId reaches_over(ValueId slot, ValueId runs, bool backward);
  ValueId run_elements();

  Builder& b_;
  Program& program_;
  const Graph& graph_;
  ScanTile& scan_;
  std::string name_;
  StateArrays totals_;
  bool declared_ = false;
  Partials own_;
  int lanes_;          // the power of two that is no less than warps
  Partials of_warps_;  // lane l holds that of warp l % lanes_
};

}  // namespace chainfold::codegen
