// BlockedRun: a warp's run of elements in a blocked arrangement, each lane's part of it one behind
// the other. Elsewhere rows are striped over lanes, so each of them is scanned across lanes. Here a
// lane scans what it has by itself, and lanes exchange what comes before them once for many loads.
// That spares exchanges and additions, and energy (docs/decisions/0047-blocked-lanes.md#evidence).
//
// Loads and stores of a lane's own would not be side by side in memory. So elements go through
// shared memory both ways, by copies beside the warp. The kept rows come first and are taken into
// registers, and then the staged ones come in their place. The staged rows are scanned where they
// lie and copied out; then the kept ones are put there, and go the same way. Lanes' parts are odd
// numbers of loads, so that the banks of shared memory serve those of all lanes without conflict.
//
// BlockedRun is for whole runs of one input and one output of elements, of the same type
// (blocked_serves()).
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/lower/scan/ring.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

class BlockedRun {
 public:
  BlockedRun(Builder& builder, const Graph& graph, const Plan& plan, ScanTile& run, ScanRing& ring)
      : b_(builder), graph_(graph), plan_(plan), run_(run), ring_(ring) {}

  /// Rows of the run that follow each other: the first element in the input, its place in the
  /// segment (both i64), and how many.
  struct Span {
    ValueId begin = kNoValue, place = kNoValue;
    int rows = 0;
  };
  /// What is known of a run before it is scanned.
  struct Folded {
    std::vector<ValueId> kept{};  ///< the kept rows' loads, in memory's order
    /// What of the run comes before each lane's kept and staged part: fields of states.
    Builder::Values before{};
    Partials all{};  ///< the fold of the run, the same in all lanes
  };
  /// As many fields, of no run.
  Builder::Values nothing_before();
  /// Copies the run into shared memory and folds it. The kept rows come first in the scan's order.
  Folded fold(const Span& kept, const Span& staged);
  /// Scans it behind `carry`, which covers all that comes before it, and stores its elements'
  /// outputs; `extent` as for ScanTile.
  void scan(const Folded& folded, const Span& kept, const Span& staged, const Partials& carry,
            ValueId extent);

 private:
  TileLowering& tile() { return run_.tile(); }
  /// Number `load` of each lane's loads.
  Loaded loaded(const Span& span, int load, ValueId value);
  /// The same, out of the warp's slot.
  Loaded read(const Span& span, int load);
  /// Where these lie in the warp's slot.
  Address address(const Span& span, int load);
  /// Of lanes' folds what comes before each lane, and the fold of all.
  Partials before_lanes(Partials lanes, Partials& all);
  /// Scans the span's loads behind what comes before each lane: `done` gets a load's number and its
  /// output.
  void scan_loads(const Span& span, const Partials& before, ValueId extent,
                  const std::function<Loaded(int)>& load,
                  const std::function<void(int, ValueId)>& done);
  void copy_out(const Span& span);

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  ScanTile& run_;
  ScanRing& ring_;
};

}  // namespace chainfold::codegen
