// Tuned values: what was found by measuring and nothing else, as data by device.
//
// Each part stands in a header of its own (tuned/), a field with its unit in its name or comment.
// What was measured stands in docs/tuned-values.md, by strategy, with devices and commits. A
// device's values are the base row and what the table in tuned.cpp says is different there. The
// base row was found on an H200 (sm_90) where it concerns GPUs.
#pragma once

#include "chainfold/codegen/choose/tuned/columns.hpp"
#include "chainfold/codegen/choose/tuned/elements.hpp"
#include "chainfold/codegen/choose/tuned/head_tiles.hpp"
#include "chainfold/codegen/choose/tuned/merge_path.hpp"
#include "chainfold/codegen/choose/tuned/moments.hpp"
#include "chainfold/codegen/choose/tuned/parts.hpp"
#include "chainfold/codegen/choose/tuned/rows.hpp"
#include "chainfold/codegen/choose/tuned/scans.hpp"
#include "chainfold/codegen/choose/tuned/size_classes.hpp"
#include "chainfold/codegen/choose/tuned/staged.hpp"
#include "chainfold/codegen/choose/tuned/staged_scans.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// A part for each strategy, one for moments in any of them, and one for size classes.
struct Tuned {
  TunedRows rows{};
  TunedMoments moments{};
  TunedElements elements{};
  TunedParts parts{};
  TunedStaged staged{};
  TunedColumns columns{};
  TunedMergePath merge_path{};
  TunedHeadTiles head_tiles{};
  TunedScans scans{};
  TunedStagedScans staged_scans{};
  TunedSizeClasses size_classes{};
};

/// The values for a device. They live as long as the process.
const Tuned& tuned_for(const Target& target);

}  // namespace chainfold::codegen
