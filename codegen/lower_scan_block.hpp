// ScanBlock: what the warps of a block tell each other in a scan. Their runs follow each other in
// memory in the order of the warps.
#pragma once

#include <vector>

#include "chainfold/codegen/lower_scan_tile.hpp"

namespace chainfold::codegen {

class ScanBlock {
 public:
  ScanBlock(Builder& builder, Program& program, const Graph& graph, ScanTile& scan);

  /// Every warp hands over the fold of its run. Contains a barrier; only once a launch.
  void share(const Partials& totals);
  /// The fold of the block's runs that come before the warp's own in the scan's direction.
  Partials before_warp();
  /// The fold of all runs.
  Partials all();

 private:
  Partials fold_where(ValueId lanes);

  Builder& b_;
  Program& program_;
  const Graph& graph_;
  ScanTile& scan_;
  Partials own_;
  Partials of_warps_;  // lane l holds that of warp l
};

/// Shared arrays of the program's last launch, `length` elements each, one a field of all states;
/// the number of the first.
int declare_shared_states(Program& program, const Graph& graph, const std::string& name,
                          int length);
/// Stores states (equal in all lanes) as element `at` (i64) of such arrays.
void store_shared(Builder& b, TileLowering& tile, int first_array, ValueId at,
                  const Partials& states);
/// Every lane receives element `at`.
Partials load_shared(Builder& b, TileLowering& tile, const Graph& graph, int first_array,
                     ValueId at);

}  // namespace chainfold::codegen
