#include "chainfold/codegen/plan/columns.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

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

bool place_columns(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                   int widest) {
  plan.strategy = Strategy::columns;
  plan.depth = choice.depth;
  plan.parts_wanted = choice.parts;
  plan.launches = choice.parts > 1 || choice.strip > 0 ? 2 : 1;
  plan.load_rows_first = target.max_warps > 1;
  plan.combine_states = true;
  plan.resident = choice.blocks;
  if (choice.blocks * choice.warps > target.resident_warps) return false;
  if (choice.strip > 0 && (target.max_warps > 1 || choice.phases > 1)) return false;
  if (choice.phases > 1) {
    // Loads lie on their width wherever rows begin, and whatever the alignment of the pointers.
    plan.phases = choice.phases;
    plan.load_width = widest_load(graph, target, std::max(1, choice.bytes));
    plan.lanes_per_segment = 1;
    plan.rows = choice.rows;
    plan.part_quantum = std::int64_t{plan.depth} * plan.warps;
    return target.max_warps > 1 && plan.depth * plan.rows <= kMostColumnLoads &&
           is_power_of_two(choice.depth) && phases_fit(plan, graph) &&
           columns_bytes(plan) <= target.shared_bytes;
  }
  // Parts, and with them scratch, and what is legal do not depend on the alignment of the pointers.
  const int bytes = std::min(target.vector_bytes, choice.bytes);
  lie(plan, widest_divisor(plan.segment, widest_load(graph, target, std::max(1, bytes))),
      choice.rows);
  const int loads =
      target.max_warps == 1 ? std::max(kCpuLoads, plan.depth) : plan.depth * plan.warps;
  plan.part_quantum = std::int64_t{loads} * plan.lanes_per_segment;
  if (plan.depth * plan.rows > kMostColumnLoads || columns_bytes(plan) > target.shared_bytes)
    return false;
  // States that wait in scratch are single columns'.
  lie(plan, choice.strip > 0 ? 1 : widest_divisor(plan.segment, widest), choice.rows);
  if (choice.strip > 0) {
    const std::int64_t step = plan.columns_per_block();
    if (plan.segment <= step) return false;
    plan.strip = std::min<std::int64_t>((choice.strip + step - 1) / step * step, plan.segment);
  }
  return is_power_of_two(choice.depth);
}

int phases_of(const Plan& plan) {
  // How far off a boundary strided rows begin is known at launch.
  if (plan.strided) return plan.load_width;
  return plan.load_width /
         std::gcd(plan.load_width, static_cast<int>(plan.segment % plan.load_width));
}

bool phases_fit(const Plan& plan, const Graph& graph) {
  return is_power_of_two(plan.phases) && plan.phases % phases_of(plan) == 0 &&
         plan.warps % plan.phases == 0 && plan.load_width > 1 && plan.lanes_per_segment == 1 &&
         plan.strip == 0 && plan.columns_per_block() <= plan.segment && graph.inputs.size() == 1 &&
         !needs_order(graph);
}

std::int64_t columns_bytes(const Plan& plan) {
  return plan.warps / 2 * plan.rows * kWarpWidth * plan.load_width * plan.state_bytes;
}

}  // namespace chainfold::codegen
