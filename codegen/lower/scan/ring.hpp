// ScanRing: a warp's runs of elements on their way to shared memory, by copies that run beside the
// warp (CopyAsync). The slots of a warp's ring hold its runs of the block's tiles in turn.
//
// A copy touches the warp's own elements and none beside them, so outputs may lie in the memory of
// inputs.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

class ScanRing {
 public:
  /// Declares the first shared arrays and the rings of the program's last launch: plan.stages slots
  /// a warp, each of plan.staged rows. `run` reads from there what it reads of rows.
  ScanRing(Builder& builder, Program& program, const Graph& graph, const Plan& plan, ScanTile& run);

  /// Starts the copies of the warp's staged rows of the block's tile `number` (i64, counted from
  /// 0): of `count` elements (kNoValue: all) from `begin` on. The slot's rows before are read, and
  /// gone.
  void start(ValueId number, ValueId begin, ValueId count) {
    start(number, begin, count, plan_.scan.staged_rows);
  }
  /// The same of any number of rows that a slot holds. `behind_loads`: as for CopyAsync.
  void start(ValueId number, ValueId begin, ValueId count, int rows, bool behind_loads = false);
  /// Waits for these copies: once, and before those of the slot's next tile start.
  void wait(ValueId number);
  /// Rows count from the first staged element, `begin` of the inputs, from now on.
  void read(ValueId number, ValueId begin);
  /// The first element of that tile's slot in each input's shared array (i64).
  ValueId place(std::size_t input, ValueId number);

 private:
  ValueId slot_of(ValueId number);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  ScanTile& run_;
  std::vector<StageCopy> copies_;  // one an input
};

}  // namespace chainfold::codegen
