#include "chainfold/codegen/plan/parts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/moments.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

namespace {

/// Elements a lane in a CPU's shortest part: a multiple of every depth times two elements a load.
constexpr std::int64_t kCpuQuantumElements = 128;
static_assert(kCpuQuantumElements % (2 * kDeepest) == 0);

/// A CPU's parts of few elements: enough for some threads, and not so many that their ends take
/// longer than they.
constexpr std::int64_t kCpuFewParts = 16;

/// Parts from which on they are many: a segment of up to so many trips is not worth two of them.
constexpr int kManyParts = 1024, kManyPartRounds = 2;

/// Segments have up to so many parts each, until so much of the target is busy to the end.
constexpr std::int64_t kMostUneven = 16;

constexpr double kBusyEnough = 0.9;
PartCut cut_into(std::int64_t wanted, const Plan& plan, std::int64_t length,
                 std::int64_t segments) {
  const std::int64_t even = (length + wanted - 1) / wanted;
  std::int64_t quanta = (even + plan.parts.quantum - 1) / plan.parts.quantum;
  if (plan.parts.few > 0) {
    const std::int64_t few = std::max<std::int64_t>(1, plan.parts.few / segments);
    quanta = std::max(quanta, std::min(kMostQuanta, length / few / plan.parts.quantum));
  }
  const std::int64_t part_length = quanta * plan.parts.quantum;
  return {.parts = (length + part_length - 1) / part_length, .part_length = part_length};
}

/// The share of the target that is busy while parts come and go in waves, the last wave included.
double busy_share(const PartCut& cut, const Plan& plan, std::int64_t length,
                  std::int64_t segments) {
  const std::int64_t waves = (cut.parts * segments + plan.parts.wave - 1) / plan.parts.wave;
  return static_cast<double>(segments) * static_cast<double>(length) /
         (static_cast<double>(waves * plan.parts.wave) *
          static_cast<double>(std::min(cut.part_length, length)));
}

/// What of a plan by parts follows from its choice and the widest loads.
void derive_parts(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                  const Widest& widest) {
  plan.strategy = Strategy::parts;
  plan.load_width = widest.peeled;
  plan.edges = widest.peeled > 1 && (widest.peeled > widest.aligned || plan.is_whole() ||
                                     plan.segment % widest.peeled != 0);
  plan.depth = choice.depth;
  plan.mean_loads = mean_loads(graph, target, widest.peeled);
  plan.lanes_per_segment = kWarpWidth;
  plan.rows = 1;
  // Parts, and with them scratch, do not depend on the alignment of the pointers. So the quantum is
  // of the widest load that the target has, not of this plan's.
  const int widest_of_all = widest_load(graph, target, std::max(1, target.vector_bytes));
  plan.parts.quantum =
      static_cast<std::int64_t>(kWarpWidth) * plan.warps * widest_of_all * plan.depth;
  // Few elements are shared out by what one warp loads at once.
  if (choice.cluster > 0) plan.parts.quantum /= plan.warps;
  if (choice.parts >= kManyParts && plan.segment > 0 &&
      plan.segment <= kManyPartRounds * plan.parts.quantum)
    plan.parts.quantum *= kManyPartRounds;
  // On a CPU a part is a task of its own: at least some kilobytes.
  if (target.is_cpu()) {
    plan.parts.quantum = std::int64_t{kWarpWidth} * kCpuQuantumElements;
    plan.parts.few = kCpuFewParts;
  }
  plan.parts.wanted = choice.parts;
  plan.combine_states = true;
  plan.parts.cluster = choice.cluster;
  const bool merged = choice.cluster == 0 && choice.parts > 1;
  if (!target.is_cpu() && merged)
    plan.parts.wave = std::max<std::int64_t>(1, target.processors * kPartWarps / plan.warps);
  // Blocks that hold as many parts as are at work at a time. Long merges would take the registers
  // of half of them.
  if (plan.parts.wave > 0 && plan.parts.wanted <= plan.parts.wave && merges_fields(graph))
    plan.occupancy = kPartWarps / plan.warps;
  plan.launches = merged ? 2 : 1;
}

}  // namespace

bool cluster_serves(const Plan& plan, const Target& target) {
  return plan.strategy == Strategy::parts && plan.parts.cluster > 1 &&
         plan.parts.cluster <= target.cluster_blocks && plan.parts.wanted == plan.parts.cluster;
}

PartCut cut_parts(const Plan& plan, std::int64_t length, std::int64_t segments) {
  if (plan.parts.cluster > 0) {
    // Parts of each segment. All blocks of a cluster are there, though some have nothing to do.
    const std::int64_t round = plan.parts.cluster * plan.parts.quantum;
    const std::int64_t rounds = std::max<std::int64_t>(1, (length + round - 1) / round);
    return {.parts = plan.parts.cluster, .part_length = rounds * plan.parts.quantum};
  }
  if (length <= 0 || segments <= 0) return {.part_length = plan.parts.quantum};
  const std::int64_t wanted = std::max<std::int64_t>(1, plan.parts.wanted / segments);
  PartCut best = cut_into(wanted, plan, length, segments);
  // One segment has the parts that its plan names.
  if (plan.parts.wave == 0 || segments == 1 || wanted >= kMostUneven) return best;
  double share = busy_share(best, plan, length, segments);
  for (std::int64_t more = wanted + 1; share < kBusyEnough && more <= kMostUneven; ++more) {
    const PartCut cut = cut_into(more, plan, length, segments);
    const double other = busy_share(cut, plan, length, segments);
    if (other > share) std::tie(best, share) = std::pair(cut, other);
  }
  return best;
}

namespace {

constexpr PlanField kParts[] = {{"warps", &PlanChoice::warps},
                                {"depth", &PlanChoice::depth},
                                {"parts", &PlanChoice::parts},
                                {"cluster", &PlanChoice::cluster, false},
                                {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  derive_parts(plan, choice, site.graph, site.target, site.widest);
  if (plan.parts.cluster > 0 && !cluster_serves(plan, site.target)) return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph& /*graph*/) {
  return fmt::format("  part_quantum {}, parts_wanted {}{}{}{}\n", plan.parts.quantum,
                     plan.parts.wanted,
                     plan.parts.few > 0 ? fmt::format(", {} of few elements", plan.parts.few) : "",
                     plan.parts.wave > 0 ? fmt::format(", {} at once", plan.parts.wave) : "",
                     plan.parts.cluster > 0 ? ", of one cluster" : "");
}

void verify_own(const Plan& plan, const Graph& /*graph*/, const Target& target,
                const RequireRule& require) {
  require(
      plan.parts.quantum > 0 && plan.parts.quantum % plan.load_width == 0 && plan.parts.wanted > 0,
      "parts have a quantum and a number");
  require(plan.parts.cluster == 0 || cluster_serves(plan, target),
          "a cluster has all parts of a segment");
  require(plan.launches == (plan.parts.wanted > 1 && plan.parts.cluster == 0 ? 2 : 1),
          "parts are merged by a second launch, one part and a cluster's are not");
}

}  // namespace

StrategyRow parts_strategy() {
  return {
      .id = Strategy::parts,
      .name = "parts",
      .serves =
          "folds over segments of any size and over the whole input, of any types, strides and "
          "alignment, on every target: parts is how many blocks' shares all segments are cut into, "
          "as "
          "far as their size allows, whose states a second launch merges; cluster, if it is not 0, "
          "is "
          "the same number, of blocks that merge those of each segment in one launch (sm_90 and "
          "later); mma as of rows, but not for double",
      .fields = kParts,
      .make = make,
      .print = print_own,
      .verify = verify_own};
}

}  // namespace chainfold::codegen
