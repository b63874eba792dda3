// Plans by parts: how segments are cut, and what follows from a choice.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Parts that the merging launch takes without being noticed (docs/decisions/0024-part-counts.md).
inline constexpr int kMostParts = 4096;
/// Warps a multiprocessor that keep a GPU's memory busy, so that parts, and what the second launch
/// merges, are few (docs/tuned-values.md#parts). Of more elements there are as many parts as can
/// be. Multiprocessors that are nearer to memory then fold more of them than others.
inline constexpr int kPartWarps = 16;
/// Whether PartsPlan::cluster is legal: a segment's parts are its blocks, and the target has as
/// many in one.
bool cluster_serves(const Plan& plan, const Target& target);
/// Quanta up to which a part grows where parts are few (PartsPlan::few).
inline constexpr std::int64_t kMostQuanta = 4;
/// Parts a segment and their length, for `segments` segments of `length` elements. They depend on
/// nothing but the plan and these two numbers. Columns are cut together, like one segment.
struct PartCut {
  std::int64_t parts = 1;
  std::int64_t part_length = 0;
};
PartCut cut_parts(const Plan& plan, std::int64_t length, std::int64_t segments);

/// Its row of the table of strategies.
StrategyRow parts_strategy();

}  // namespace chainfold::codegen
