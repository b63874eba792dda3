#include "chainfold/codegen/plan/merge_path.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

namespace {

/// Elements that may be added one behind the other as they are: n of f64 have a bound of 4 log2(n)
/// u (docs/numerics.md), and take n - 1 roundings.
constexpr int kMostInARow = 17;

constexpr PlanField kFields[] = {
    {"warps", &PlanChoice::warps},        {"depth", &PlanChoice::depth},
    {"rows", &PlanChoice::rows},          {"parts", &PlanChoice::parts},
    {"apart", &PlanChoice::apart, false}, {"blocks", &PlanChoice::occupancy, false},
    {"bytes", &PlanChoice::bytes}};

/// What a tile of several rows does not know of its later ones.
bool fits_rows(const Plan& plan, const Graph& graph) {
  return plan.rows == 1 || plan.path.apart > 0 || !asks_behind(graph);
}

/// One that looks at offsets, or three that find heads; two of folds, or three of scans.
int launches_of(const Graph& graph) {
  return (has_heads(graph) ? 3 : 1) + (has_scans(graph) ? 3 : 2);
}

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  plan.strategy = Strategy::merge_path;
  // Lanes that are elements of vectors take neighbours.
  plan.load_width = site.target.vector_lanes ? 1 : site.widest.aligned;
  plan.depth = choice.depth;
  plan.rows = choice.rows;
  plan.lanes_per_segment = kWarpWidth;
  plan.vector_lanes = site.target.vector_lanes;
  plan.parts.wanted = choice.parts;
  plan.path.apart = choice.apart;
  if (choice.apart > 0 && !site.target.vector_lanes) return std::nullopt;
  // What goes on behind a stretch of a scan begins and ends anywhere.
  plan.edges = has_scans(site.graph) && plan.load_width > 1;
  plan.occupancy = choice.occupancy;
  // Tiles and scans merge states; the others may do with values, as long as few are added in a row.
  plan.combine_states =
      choice.apart == 0 || choice.apart > kMostInARow + 1 || has_scans(site.graph);
  plan.launches = launches_of(site.graph);
  if (elements_a_lane(plan) > kMostLaneElements || choice.occupancy < 0 ||
      choice.occupancy > kMostPathBlocks)
    return std::nullopt;
  if (!fits_rows(plan, site.graph)) return std::nullopt;
  if (merge_path_bytes(plan) > site.target.shared_bytes) return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph& graph) {
  std::string text =
      fmt::format("  rows {} of {} elements, tiles of {} items, stretches_wanted {}\n", plan.rows,
                  elements_a_row(plan), tile_items(plan), plan.parts.wanted);
  if (plan.path.apart > 0)
    text += fmt::format("  segments one by one, {}\n",
                        has_scans(graph)
                            ? "element by element"
                            : fmt::format("of {} elements and more by all lanes", plan.path.apart));
  return text;
}

void verify_own(const Plan& plan, const Graph& graph, const Target& target,
                const RequireRule& require) {
  require(is_ragged(graph), "a merge path needs segments that data decide");
  require(elements_a_lane(plan) <= kMostLaneElements, "a lane loads its flags at once");
  require(tile_items(plan) > 0 && plan.parts.wanted > 0, "tiles have items, and stretches tiles");
  require(merge_path_bytes(plan) <= target.shared_bytes, "tiles fit the target's shared memory");
  require(plan.combine_states || (plan.path.apart > 0 && !has_scans(graph)),
          "tiles and scans merge states");
  require(plan.combine_states || plan.path.apart <= kMostInARow + 1,
          "few elements are added one behind the other");
  require(fits_rows(plan, graph), "elements that ask for their segment's end are of one row");
  require(plan.path.apart == 0 || target.vector_lanes, "vectors take segments one by one");
  require(plan.launches == launches_of(graph), "launches find the segments, and fold or scan them");
}

}  // namespace

std::int64_t merge_path_bytes(const Plan& plan) {
  if (plan.path.apart > 0) return 0;  // there are no tiles
  const std::int64_t elements = std::int64_t{elements_a_row(plan)} * plan.rows;
  return (elements + std::int64_t{kWarpWidth} * plan.rows) * plan.state_bytes + elements +
         2 * kMostLaneElements * kWarpWidth;
}

bool has_long_states(const Graph& graph) { return state_bytes(graph) > size_of(DType::f64); }

bool asks_before(const Graph& graph) {
  return (reads_index(graph) && !scans_backward(graph)) || elements_read_extent(graph);
}

bool asks_behind(const Graph& graph) {
  return (reads_index(graph) && scans_backward(graph)) || elements_read_extent(graph);
}

StrategyRow merge_path_strategy() {
  return {.id = Strategy::merge_path,
          .name = "merge_path",
          .serves =
              "folds and scans over segments that offsets or heads tell, of any types and "
              "alignment, on every target: depth is loads of a lane that follow each other, of 16 "
              "elements in all at most, rows is those of a warp's tile, as far as shared memory "
              "holds a state for each element, parts is stretches of elements and ends of segments "
              "together, one a warp, as far as there are tiles for them, apart (0: by "
              "tiles; on a CPU alone) takes segments one by one, those with so many elements or "
              "more by all lanes at once and others element by element, "
              "blocks (0: any) is how many of a warp a multiprocessor is to hold, and warps is "
              "those of a block that merges what stretches left",
          .fields = kFields,
          .make = make,
          .print = print_own,
          .verify = verify_own};
}

}  // namespace chainfold::codegen
