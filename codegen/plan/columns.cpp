#include "chainfold/codegen/plan/columns.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/folds.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

namespace {

/// Loads of a lane in the shortest part of a CPU: a part is a task of its own.
constexpr int kCpuLoads = 128;

}  // namespace

int group_of(std::int64_t columns, int width) {
  const auto vectors = static_cast<std::uint64_t>(columns / width);
  return static_cast<int>(std::min<std::uint64_t>(kWarpWidth, std::bit_ceil(vectors)));
}

void lie(Plan& plan, int width, int runs) {
  plan.load_width = width;
  const int group = group_of(plan.segment, width);
  plan.lanes_per_segment = kWarpWidth / group;
  plan.rows = runs;
  while (plan.rows > 1 && std::int64_t{plan.rows} * kWarpWidth > plan.segment / width)
    plan.rows /= 2;
}

namespace {

/// What of the plan follows from its choice. False where the choice is not legal.
bool derive_columns(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                    int widest) {
  plan.strategy = Strategy::columns;
  plan.depth = choice.depth;
  plan.parts.wanted = choice.parts;
  plan.launches = choice.parts > 1 || choice.strip > 0 ? 2 : 1;
  plan.load_rows_first = !target.is_cpu();
  plan.combine_states = true;
  plan.occupancy = choice.occupancy;
  if (choice.occupancy * choice.warps > target.resident_warps) return false;
  if (choice.strip > 0 && (!target.is_cpu() || choice.phases > 1)) return false;
  if (choice.phases > 1) {
    // Loads lie on their width wherever rows begin, and whatever the alignment of the pointers.
    plan.columns.phases = choice.phases;
    plan.load_width = widest_load(graph, target, std::max(1, choice.bytes));
    plan.lanes_per_segment = 1;
    plan.rows = choice.rows;
    plan.parts.quantum = std::int64_t{plan.depth} * plan.warps;
    return !target.is_cpu() && plan.depth * plan.rows <= kMostColumnLoads &&
           is_power_of_two(choice.depth) && phases_fit(plan, graph) &&
           columns_bytes(plan) <= target.shared_bytes;
  }
  // Parts, and with them scratch, and what is legal do not depend on the alignment of the pointers.
  const int bytes = std::min(target.vector_bytes, choice.bytes);
  lie(plan, widest_divisor(plan.segment, widest_load(graph, target, std::max(1, bytes))),
      choice.rows);
  const int loads = target.is_cpu() ? std::max(kCpuLoads, plan.depth) : plan.depth * plan.warps;
  plan.parts.quantum = std::int64_t{loads} * plan.lanes_per_segment;
  if (plan.depth * plan.rows > kMostColumnLoads || columns_bytes(plan) > target.shared_bytes)
    return false;
  // States in scratch are those of single columns.
  lie(plan, choice.strip > 0 ? 1 : widest_divisor(plan.segment, widest), choice.rows);
  if (choice.strip > 0) {
    const std::int64_t step = plan.columns_per_block();
    if (plan.segment <= step) return false;
    plan.columns.strip =
        std::min<std::int64_t>((choice.strip + step - 1) / step * step, plan.segment);
  }
  return is_power_of_two(choice.depth);
}

}  // namespace

int phases_of(const Plan& plan) {
  // How far off a boundary strided rows begin is known at launch.
  if (plan.strided) return plan.load_width;
  return plan.load_width /
         std::gcd(plan.load_width, static_cast<int>(plan.segment % plan.load_width));
}

bool phases_fit(const Plan& plan, const Graph& graph) {
  return is_power_of_two(plan.columns.phases) && plan.columns.phases % phases_of(plan) == 0 &&
         plan.warps % plan.columns.phases == 0 && plan.load_width > 1 &&
         plan.lanes_per_segment == 1 && plan.columns.strip == 0 &&
         plan.columns_per_block() <= plan.segment && graph.inputs.size() == 1 &&
         !has_packed(graph) && !needs_order(graph);
}

std::int64_t columns_bytes(const Plan& plan) {
  return plan.warps / 2 * plan.rows * kWarpWidth * plan.load_width * plan.state_bytes;
}

namespace {

constexpr PlanField kColumns[] = {{"warps", &PlanChoice::warps},
                                  {"depth", &PlanChoice::depth},
                                  {"runs", &PlanChoice::rows},
                                  {"phases", &PlanChoice::phases, false},
                                  {"strip", &PlanChoice::strip, false},
                                  {"parts", &PlanChoice::parts},
                                  {"blocks", &PlanChoice::occupancy, false},
                                  {"bytes", &PlanChoice::bytes}};

std::optional<Plan> make(const Plan& begun, const PlanChoice& choice, const PlanSite& site) {
  Plan plan = begun;
  if (!derive_columns(plan, choice, site.graph, site.target, site.widest.aligned))
    return std::nullopt;
  return finish_folds(plan, choice, site);
}

std::string print_own(const Plan& plan, const Graph& /*graph*/) {
  return fmt::format(
      "  lanes_per_column {}, runs {}, {} columns a block{}{}{}{}\n  part_quantum {} rows, "
      "parts_wanted "
      "{}\n",
      plan.lanes_per_segment, plan.rows, plan.columns_per_block(),
      plan.columns.phases > 1 ? fmt::format(", rows in {} phases", plan.columns.phases) : "",
      plan.occupancy > 0 ? fmt::format(", {} a processor", plan.occupancy) : "",
      plan.columns.strip > 0 ? ", states in scratch" : "",
      plan.load_rows_first ? ", all rows loaded first" : "", plan.parts.quantum, plan.parts.wanted);
}

void verify_own(const Plan& plan, const Graph& graph, const Target& target,
                const RequireRule& require) {
  require(plan.segment >= 1 && !plan.edges, "columns have a number");
  require(is_power_of_two(plan.depth) && is_power_of_two(plan.warps),
          "warps and depth are powers of two");
  require(plan.rows == 1 || plan.lanes_per_segment == 1, "several runs need whole warps");
  require(plan.columns_per_block() <= plan.segment ||
              (plan.rows == 1 && plan.columns_per_block() < 2 * plan.segment),
          "a block's columns exist");
  require(columns_bytes(plan) <= target.shared_bytes, "states fit the target's shared memory");
  require(plan.parts.quantum > 0 && plan.parts.wanted > 0, "parts have a quantum and a number");
  require(plan.launches == (plan.parts.wanted > 1 || plan.columns.strip > 0 ? 2 : 1),
          "what lies in scratch is merged");
  require(plan.columns.strip == 0 ||
              (plan.lanes_per_segment == 1 && plan.warps == 1 && plan.load_width == 1),
          "one warp walks along a strip, by single columns");
  require(plan.occupancy * plan.warps <= target.resident_warps, "a processor holds the blocks");
  require(plan.columns.phases == 1 || phases_fit(plan, graph),
          "the warps of a block take whole turns of phases, of the rows of one input");
}

}  // namespace

StrategyRow columns_strategy() {
  return {
      .id = Strategy::columns,
      .name = "columns",
      .serves =
          "folds over columns of a matrix, any number of them, of any types, strides and "
          "alignment, "
          "on every target, and is the only one that does: runs are loads side by side of a warp, "
          "depth rows under way (64 loads in all), parts those that rows are cut into, whose "
          "states a "
          "second launch merges; phases are of GPUs, of one input and folds without order, strip "
          "is "
          "of CPUs; states that warps exchange have to fit into shared memory",
      .fields = kColumns,
      .make = make,
      .print = print_own,
      .verify = verify_own};
}

}  // namespace chainfold::codegen
