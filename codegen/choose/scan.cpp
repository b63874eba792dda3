#include "chainfold/codegen/choose/scan.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/scan_heads.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/scan_shapes.hpp"

namespace chainfold::codegen {

namespace {

/// Whether a CPU's long segments are so many that a thread each scans them, which reads them once.
bool many_long(const Graph& graph, const PlanRequest& request) {
  return request.is_unlimited() && !values_wait(graph);
}

/// Rows of a warp's tile whose segments quick folds scan. That takes less than their totals do, so
/// that many rows stay in registers.
int most_quick_rows(const Graph& graph, const Target& target, int width) {
  const TunedScans& tuned = tuned_for(target).scans;
  const int bytes = element_bytes(graph);
  const int folds = static_cast<int>(graph.folds.size());
  return std::max(
      1, std::min(kMostRunRows, tuned.quick_row_bytes / (std::max(1, bytes) * width)) / folds);
}

}  // namespace

PlanChoice scan_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedScans& tuned = tuned_for(target).scans;
  const bool one_warp = target.is_cpu();
  const std::int64_t s = request.segment;
  struct Attempt {
    Strategy strategy;
    int most_rows = std::numeric_limits<int>::max();
  };
  std::vector<Attempt> order;
  const bool few = shape_of_few(graph, target, request).has_value();
  if (few) {
    // Tiles that wait have a launch that clears their slots, and tickets; these have neither.
    auto choice = scan_choice_of(Strategy::propagate, graph, target, request);
    if (choice) choice->direct = 1;
    if (choice && make_plan(graph, target, request, *choice)) return *choice;
  }
  if (s == 0 && owned_by_one_thread(graph, target, request)) order.push_back({Strategy::scan_run});
  if (s > 0 && one_warp) {
    const bool fits =
        scans_both_ways(graph) && s <= std::int64_t{tuned.cpu_rows_both_ways} * kWarpWidth;
    if (s < kWarpWidth || rows_of_whole_tile(graph, target, s) > 0 || fits)
      order.push_back({Strategy::scan_tile});
    if (s <= tuned_for(target).size_classes.cpu_longest_run || many_long(graph, request))
      order.push_back({Strategy::scan_run});
  } else if (s > 0) {
    const int widest = widest_load(target, request, widest_of_scan(graph));
    // Segments that fill a warp's rows have no use for heads among them.
    const bool fill_rows =
        s % widest == 0 && s > std::int64_t{tuned.tile_rows - 1} * kWarpWidth * widest;
    if (has_quick_folds(graph) && !values_wait(graph) && !has_long_merges(graph, target)) {
      order.push_back({Strategy::scan_tile, most_quick_rows(graph, target, widest)});
      if (s % widest != 0 && request.is_unlimited())
        order.push_back({s <= tuned.longest_quick_run ? Strategy::scan_run : Strategy::propagate});
    } else {
      // A warp's tile needs no merges across warps.
      if (scans_places(graph) && element_bytes(graph) <= tuned.place_bytes)
        order.push_back({Strategy::scan_tile, tuned.place_rows});
      if (fill_rows) order.push_back({Strategy::scan_block});
      order.push_back({Strategy::scan_tile, values_wait(graph) ? tuned.tile_rows : tuned.run_rows});
      order.push_back({Strategy::scan_block});
    }
  }
  // Outputs that stay in the caches take the room of look_ahead's tiles that are on their way
  // (docs/decisions/0039-cpu-scans.md).
  const std::int64_t kept = cached_output_limit(graph, target);
  const bool streams = kept > 0 && (request.is_unlimited() || request.size_limit > kept);
  if (one_warp && streams) order.push_back({Strategy::look_ahead});
  for (const Strategy strategy : {Strategy::look_back, Strategy::propagate, Strategy::scan_tile})
    order.push_back({strategy});
  for (const Attempt& attempt : order) {
    // Of few elements every block has one tile or none, and small ones are there sooner.
    if (attempt.strategy == Strategy::look_back && !few) {
      const auto staged = staged_scan_choice(graph, target, request);
      const auto plan = staged ? make_plan(graph, target, request, *staged) : std::optional<Plan>();
      if (plan) return better_by_heads(graph, target, request, *plan).value_or(*staged);
    }
    const std::optional<PlanChoice> choice =
        scan_choice_of(attempt.strategy, graph, target, request);
    if (!choice || choice->depth > attempt.most_rows) continue;
    const std::optional<Plan> plan = make_plan(graph, target, request, *choice);
    if (plan) return better_by_heads(graph, target, request, *plan).value_or(*choice);
  }
  throw InternalError("no strategy serves a scan", print(graph));
}

}  // namespace chainfold::codegen
