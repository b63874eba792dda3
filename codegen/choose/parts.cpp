// The parts strategy's decisions: how many blocks share a segment, and what of it is under way.
#include "chainfold/codegen/choose/parts.hpp"

#include <algorithm>
#include <cstdint>

#include "chainfold/codegen/choose/any.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

bool takes_parts(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedParts& tuned = tuned_for(target).parts;
  const std::int64_t from = tuned.from_bytes * (has_moments(graph) ? tuned.moments_from : 1);
  return request.is_whole() || request.segment >= from / widest_input(graph) ||
         blocks_of_few_long(graph, target, request) > 0;
}

PlanChoice parts_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedParts& tuned = tuned_for(target).parts;
  const int blocks_of_few = blocks_of_few_long(graph, target, request);
  PlanChoice choice = any_choice(graph, target, request);
  choice.strategy = Strategy::parts;
  choice.parts = kMostParts;
  if (target.is_cpu()) {
    choice.depth = std::max(1, choice.depth / 2);
    choose_moments(choice, graph, target, widest_load(graph, target, choice.bytes), 1);
    choice.parts = tuned.cpu_parts;
  } else if (blocks_of_few > 0) {
    // All of a segment is under way at once, or in few trips.
    const bool wide = request.segment * widest_input(graph) >= tuned.wide_segment_bytes;
    choice.warps = blocks_of_few == 1 && wide ? 16 : 8;
    choice.depth = tuned.few_part_loads;
    choice.parts = blocks_of_few;
    choice.cluster = blocks_of_few > 1 ? blocks_of_few : 0;
    choice.mma = false;
  } else {
    // Merges of several fields, and loads of many inputs, are long and take many registers.
    const bool is_long = graph.inputs.size() > 2 ||
                         std::any_of(graph.folds.begin(), graph.folds.end(), [&](const Fold& fold) {
                           const bool at_once = fold.place || fold.relative;  // a load is one merge
                           return merges_fields(fold) && !(request.is_whole() && at_once);
                         });
    const auto up_to = [&](std::int64_t most) {
      return !request.is_unlimited() && request.size_limit <= most;
    };
    const bool few = !request.is_unlimited() || has_long_states(graph, target);
    choice.depth = is_long ? choice.depth / 2
                           : std::min(choice.depth, few ? tuned.few_part_loads : tuned.part_loads);
    if (folds_tests(graph)) choice.depth = std::min(choice.depth, tuned.loads_of_tests);
    if (has_moments(graph))
      choice.depth = std::min(choice.depth, loads_of_moments(graph, target, choice.bytes));
    const std::int64_t round = std::int64_t{kWarpWidth} * choice.warps * choice.depth *
                               widest_load(graph, target, std::max(1, target.vector_bytes));
    const bool is_short = request.segment > 0 &&
                          (has_moments(graph) || request.segment < tuned.short_part_rounds * round);
    const bool bytes = !few && widest_input(graph) == 1;
    if (is_short || bytes || up_to(small_block_limit(graph, target))) choice.warps /= 2;
    if (!few && widest_input(graph) == 2) choice.mma = false;
    if (few) choice.parts = std::min(kMostParts, target.processors * kPartWarps / choice.warps);
    if (up_to(cluster_limit(graph, target))) {
      choice.parts = choice.cluster = target.cluster_blocks;
      choice.depth *= 2;  // as much on its way by fewer warps
      choice.warps = std::min(tuned.cluster_warps, target.max_warps);
    }
  }
  return choice;
}

}  // namespace chainfold::codegen
