#include "chainfold/codegen/plan/head_tiles.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Launches: heads are counted and placed, stretches are folded, and what lies in several merged.
constexpr int kLaunches = 4;

constexpr PlanField kFields[] = {{"warps", &PlanChoice::warps},
                                 {"depth", &PlanChoice::depth},
                                 {"parts", &PlanChoice::parts},
                                 {"blocks", &PlanChoice::occupancy, false},
                                 {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  if (!has_heads(site.graph) || has_scans(site.graph) || site.target.vector_lanes)
    return std::nullopt;
  Plan plan = begun;
  plan.strategy = Strategy::head_tiles;
  plan.load_width = site.widest.aligned;
  plan.depth = choice.depth;
  plan.lanes_per_segment = kWarpWidth;
  plan.parts.wanted = choice.parts;
  plan.occupancy = choice.occupancy;
  plan.combine_states = true;
  plan.launches = kLaunches;
  if (elements_a_lane(plan) > kMostLaneElements || choice.occupancy < 0 ||
      choice.occupancy > kMostPathBlocks ||
      head_tile_bytes(plan, site.graph) > site.target.shared_bytes)
    return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph&) {
  return fmt::format("  tiles of {} elements, stretches_wanted {}\n", elements_a_row(plan),
                     plan.parts.wanted);
}

void verify_own(const Plan& plan, const Graph& graph, const Target& target,
                const RequireRule& require) {
  require(has_heads(graph) && !has_scans(graph), "head tiles are of folds of what heads begin");
  require(!target.vector_lanes, "lanes vote and exchange");
  require(elements_a_lane(plan) <= kMostLaneElements, "a lane loads its flags at once");
  require(plan.parts.wanted > 0, "stretches have tiles");
  require(head_tile_bytes(plan, graph) <= target.shared_bytes,
          "tiles fit the target's shared memory");
  require(plan.combine_states, "tiles merge states");
  require(plan.launches == kLaunches, "launches find heads, fold, and merge");
}

}  // namespace

bool asks_heads(const Graph& graph) { return reads_index(graph) || segments_read_extent(graph); }

std::int64_t head_tile_bytes(const Plan& plan, const Graph& graph) {
  const int place = asks_heads(graph) ? size_of(DType::i32) : 0;
  return elements_a_row(plan) * (plan.state_bytes + size_of(DType::u8) + place);
}

StrategyRow head_tiles_strategy() {
  return {.id = Strategy::head_tiles,
          .name = "head_tiles",
          .serves =
              "folds over segments that heads begin, of any types and alignment, on "
              "GPUs: depth is loads of a lane that follow each other, of 16 elements in all at "
              "most, as far as shared memory holds a state for each element of a tile, parts is "
              "stretches of elements, one a warp, as far as there are tiles for them, blocks (0: "
              "any) is how many of a warp a multiprocessor is to hold, and warps is those of a "
              "block that merges what stretches left",
          .fields = kFields,
          .make = make,
          .print = print_own,
          .verify = verify_own};
}

}  // namespace chainfold::codegen
