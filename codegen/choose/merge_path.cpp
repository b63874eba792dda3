#include "chainfold/codegen/choose/merge_path.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"

namespace chainfold::codegen {

PlanChoice merge_path_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedMergePath& tuned = tuned_for(target).merge_path;
  PlanChoice choice;
  choice.strategy = Strategy::merge_path;
  choice.mma = false;
  choice.bytes = load_bytes(graph, target);
  const bool cpu = target.is_cpu();
  choice.warps = cpu ? 1 : tuned.warps;
  const bool few = has_scans(graph) || has_long_states(graph);
  const int blocks = few ? tuned.few_blocks : tuned.blocks;
  choice.occupancy = cpu ? 0 : blocks;
  choice.rows = cpu ? tuned.cpu_rows : tuned.rows;
  choice.parts = cpu ? tuned.cpu_stretches
                     : std::min(kMostStretches, tuned.waves * blocks * target.processors);
  const auto width = [&] {
    return cpu ? 1 : widest_of(graph, target, request, choice.bytes).aligned;
  };
  choice.apart = target.vector_lanes ? tuned.cpu_apart : 0;
  choice.depth = cpu ? 1 : std::max(1, tuned.elements_a_lane / width());
  // Of long states a tile has fewer.
  const auto bytes = [&] {
    Plan plan;
    plan.load_width = width();
    plan.depth = choice.depth;
    plan.rows = choice.rows;
    plan.path.apart = choice.apart;
    plan.state_bytes = state_bytes(graph);
    return merge_path_bytes(plan);
  };
  const std::int64_t most = cpu                ? tuned.cpu_tile_bytes
                            : has_scans(graph) ? tuned.scan_tile_bytes
                                               : tuned.tile_bytes;
  while (choice.rows > 1 && bytes() > most) choice.rows /= 2;
  while (choice.depth > 1 && bytes() > most) choice.depth /= 2;
  while (choice.bytes > 1 && bytes() > target.shared_bytes) choice.bytes /= 2;
  return choice;
}

}  // namespace chainfold::codegen
