#include "chainfold/codegen/plan/staged.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

namespace {

/// Elements that a lane takes into registers before it adds them up.
constexpr int kMostElementsAhead = 64;

}  // namespace

std::int64_t least_tile(const Graph& graph, std::int64_t elements) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const GraphInput& input : graph.inputs)
    least = std::min<std::int64_t>(least, size_of(input.type));
  return least * elements;
}

std::pair<int, bool> staged_width(const Graph& graph, std::int64_t segment, int widest, int bytes,
                                  int lanes) {
  const int width = widest_divisor(segment, widest);
  if (graph.inputs.size() != 1 || bytes < kBankBytes) return {width, false};
  if (lanes > 1 && needs_order(graph))
    return {width, false};  // each lane's elements must be one run
  const int word = kBankBytes / size_of(graph.inputs[0].type);
  return width < word ? std::pair{word, true} : std::pair{width, false};
}

namespace {

/// What of a staged plan follows from its choice; `widest` elements a load at most. False where the
/// choice is not legal.
bool derive_staged(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                   int widest) {
  if (!target.async_copies || plan.segment < 1 || graph.inputs.empty()) return false;
  if (has_packed(graph)) return false;  // copies are of elements
  if (!is_power_of_two(choice.lanes) || choice.lanes > kWarpWidth ||
      !is_power_of_two(choice.stages))
    return false;
  if (choice.store_batch < choice.stages || choice.occupancy < 1) return false;
  if (choice.tail_trips < 0 || choice.tail_trips > choice.store_batch) return false;
  plan.strategy = Strategy::staged;
  std::tie(plan.load_width, plan.staged.straddle) =
      staged_width(graph, plan.segment, widest, choice.bytes, choice.lanes);
  plan.lanes_per_segment = choice.lanes;
  plan.depth = plan.loads_a_lane();
  plan.rows = choice.rows;
  plan.stages = choice.stages;
  plan.staged.store_batch = choice.store_batch;
  plan.staged.tail_trips = choice.tail_trips;
  plan.occupancy = choice.occupancy;
  plan.blocks = std::int64_t{target.processors} * choice.occupancy;
  const int folds = static_cast<int>(graph.folds.size());
  plan.load_rows_first = plan.rows * plan.depth * plan.load_width * folds <= kMostElementsAhead;
  plan.loads_at_once = std::max(1, kMostElementsAhead / 4 / (folds * plan.load_width));
  // What is legal must not depend on the alignment of pointers, so the worst is taken.
  Plan worst = plan;
  worst.base_alignment = worst.load_width = 1;
  worst.staged.straddle = false;
  if (worst.loads_a_lane() > kMostStagedLoads) return false;
  // Lanes of a small group take turns along their segment.
  const bool turns = choice.lanes > 1 && choice.lanes < kWarpWidth && worst.loads_a_lane() > 1;
  if (turns && needs_order(graph)) return false;
  if (least_tile(graph, plan.segments_per_warp() * plan.segment) < kLeastStagedTile) return false;
  return stages_fit(worst, graph, target) && plan.occupancy * plan.warps <= target.resident_warps;
}

}  // namespace

StageCopy stage_copy(const Plan& plan, DType input) {
  // Copies that begin within a line of the cache are slow: they share lines with their neighbours.
  constexpr int kUnit = 16;
  const int size = size_of(input);
  const std::int64_t bytes = plan.segments_per_warp() * plan.segment * size;
  const bool exact = bytes % kGpuLineBytes == 0 && plan.base_alignment >= kUnit;
  if (exact) return {.elements = static_cast<int>(bytes / size), .exact = true, .unit = kUnit};
  const std::int64_t lines = (bytes + 2 * kGpuLineBytes - size - 1) / kGpuLineBytes;
  return {.elements = static_cast<int>(lines * (kGpuLineBytes / size)),
          .exact = false,
          .unit = kGpuLineBytes};
}

std::int64_t staged_bytes(const Plan& plan, const Graph& graph) {
  constexpr std::int64_t kUnit = 16;
  auto padded = [](std::int64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; };
  const std::int64_t slots = std::int64_t{plan.warps} * plan.stages;
  std::int64_t bytes = 0;
  for (const GraphInput& input : graph.inputs) {
    bytes += slots * stage_copy(plan, input.type).elements * size_of(input.type);
    bytes += padded(slots * static_cast<std::int64_t>(sizeof(std::uint64_t)));
  }
  for (const NodeId output : graph.outputs) {
    bytes += padded(std::int64_t{plan.warps} * plan.staged.store_batch * plan.segments_per_warp() *
                    size_of(graph.node(output).type));
  }
  return bytes;
}

bool stages_fit(const Plan& plan, const Graph& graph, const Target& target) {
  return target.fits_shared(staged_bytes(plan, graph), plan.occupancy);
}

namespace {

constexpr PlanField kStaged[] = {
    {"warps", &PlanChoice::warps},       {"lanes", &PlanChoice::lanes},
    {"rows", &PlanChoice::rows},         {"stages", &PlanChoice::stages},
    {"burst", &PlanChoice::store_batch}, {"late", &PlanChoice::tail_trips, false},
    {"blocks", &PlanChoice::occupancy},  {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!derive_staged(plan, choice, site.graph, site.target, site.widest.aligned))
    return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph& graph) {
  return fmt::format(
             "  stages {}, burst {}{}, blocks {}, {} a processor, {} bytes of shared memory\n",
             plan.stages, plan.staged.store_batch,
             plan.one_batch() ? ", one a block"
             : plan.staged.tail_trips > 0
                 ? fmt::format(", {} rounds a late block", plan.staged.tail_trips)
                 : "",
             plan.blocks, plan.occupancy, staged_bytes(plan, graph)) +
         print_lanes(plan);
}

void verify_own(const Plan& plan, const Graph& graph, const Target& target,
                const RequireRule& require) {
  require(!plan.strided, "copies bring what lies side by side");
  require(plan.segment >= 1 && plan.depth >= plan.loads_a_lane() && !plan.edges,
          "a tile's loads are issued together");
  require(is_power_of_two(plan.stages) && plan.blocks >= 1, "stages and blocks");
  require(plan.staged.store_batch >= plan.stages,
          "copies reach no further than into the next burst");
  require(plan.staged.tail_trips >= 0 && plan.staged.tail_trips <= plan.staged.store_batch,
          "a block that comes late has one burst");
  require(target.async_copies && stages_fit(plan, graph, target),
          "stages fit the target's shared memory");
  for (const GraphInput& input : graph.inputs) {
    const StageCopy copy = stage_copy(plan, input.type);
    const std::int64_t bytes = plan.segments_per_warp() * plan.segment * size_of(input.type);
    require(copy.exact || bytes >= 32, "what a copy brings besides its tile lies in the next one");
  }
}

}  // namespace

StrategyRow staged_strategy() {
  return {
      .id = Strategy::staged,
      .name = "staged",
      .serves =
          "folds that read an input, over segments of 1 to 8192 elements without strides, of any "
          "types and alignment, on GPUs that copy to shared memory beside other work (sm_80 and "
          "later): lanes share a segment (at most 256 elements each; of folds in order one or 32, "
          "unless each lane has one element), rows are segments that a group of lanes takes at "
          "once, "
          "stages tiles of a warp in shared memory, burst tiles whose results are stored together "
          "(no "
          "fewer than stages), late rounds of a block that starts late (up to burst), blocks those "
          "that a processor holds; tiles have 256 bytes at least, and all of it has to fit into "
          "shared memory",
      .fields = kStaged,
      .make = make,
      .print = print_own,
      .verify = verify_own};
}

}  // namespace chainfold::codegen
