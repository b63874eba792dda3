#include "chainfold/codegen/choose/head_tiles.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/head_tiles.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"

namespace chainfold::codegen {

std::optional<PlanChoice> head_tiles_choice(const Graph& graph, const Target& target,
                                            const PlanRequest& request) {
  if (!has_heads(graph) || has_scans(graph) || target.is_cpu()) return std::nullopt;
  const TunedHeadTiles& tuned = tuned_for(target).head_tiles;
  PlanChoice choice;
  choice.strategy = Strategy::head_tiles;
  choice.mma = false;
  choice.warps = tuned.warps;
  choice.bytes = load_bytes(graph, target);
  Plan plan;
  plan.load_width = widest_of(graph, target, request, choice.bytes).aligned;
  plan.depth = std::max(1, tuned.elements_a_lane / plan.load_width);
  plan.state_bytes = state_bytes(graph);
  // Of long states a tile has fewer.
  while (plan.depth > 1 && head_tile_bytes(plan, graph) > tuned.tile_bytes) plan.depth /= 2;
  choice.depth = plan.depth;
  // As many as a multiprocessor holds, since stretches are one wave of them.
  const int blocks = has_long_states(graph) ? tuned.few_blocks : tuned.blocks;
  choice.occupancy = std::min(blocks, target.resident_warps / 2);
  while (choice.occupancy > 1 &&
         !target.fits_shared(head_tile_bytes(plan, graph), choice.occupancy))
    --choice.occupancy;
  choice.parts = std::min(kMostStretches, tuned.waves * choice.occupancy * target.processors);
  if (!make_plan(graph, target, request, choice)) return std::nullopt;
  return choice;
}

}  // namespace chainfold::codegen
