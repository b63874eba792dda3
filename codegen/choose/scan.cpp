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
  return request.most_elements == 0 && !values_wait(graph);
}

/// Rows of a warp's tile whose segments quick folds scan, which takes less than their totals do, so
/// that many stay in registers. Measured on an H200, of a copy, recurrences of f32 of 1000 and
/// 4096: by tiles 0.75 and 0.95, by blocks 0.36 and 0.35; of 8192 by blocks 0.47, by a tile in
/// shared memory (look_back) 0.61.
int most_quick_rows(const Graph& graph, int width) {
  constexpr int kBytes = 512;  // of a lane's registers
  const int bytes = element_bytes(graph);
  const int folds = static_cast<int>(graph.folds.size());
  return std::max(1, std::min(kMostRunRows, kBytes / (std::max(1, bytes) * width)) / folds);
}

/// Elements of a segment that is no multiple of a load up to which a warp scans it by itself where
/// there are quick folds, whose tiles have no heads. Measured on an H200, of a copy, recurrences of
/// f32 of 5001: by scan_run 0.38, by propagate 0.26, by look_back 0.10; of 100001 by propagate
/// 0.44, by look_back 0.16.
constexpr std::int64_t kLongestQuickRun = 16 * 1024;

}  // namespace

PlanChoice scan_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const bool one_warp = target.max_warps == 1;
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
    const bool fits = scans_both_ways(graph) && s <= std::int64_t{kCpuRowsBothWays} * kWarpWidth;
    if (s < kWarpWidth || rows_of_whole_tile(graph, s) > 0 || fits)
      order.push_back({Strategy::scan_tile});
    if (s <= kCpuLongestRun || many_long(graph, request)) order.push_back({Strategy::scan_run});
  } else if (s > 0) {
    const int widest = widest_load(target, request, widest_of_scan(graph));
    // Segments that fill a warp's rows have no use for heads among them.
    const bool fill_rows = s % widest == 0 && s > std::int64_t{kTileRows - 1} * kWarpWidth * widest;
    if (has_quick_folds(graph) && !values_wait(graph) && !has_long_merges(graph)) {
      order.push_back({Strategy::scan_tile, most_quick_rows(graph, widest)});
      if (s % widest != 0 && request.most_elements == 0)
        order.push_back({s <= kLongestQuickRun ? Strategy::scan_run : Strategy::propagate});
    } else {
      if (fill_rows) order.push_back({Strategy::scan_block});
      order.push_back({Strategy::scan_tile, values_wait(graph) ? kTileRows : kRunRows});
      order.push_back({Strategy::scan_block});
    }
  }
  // Outputs that stay in the caches take the room of tiles that are on their way: two threads of a
  // Zen 4, 8 to 30 MiB of f16 and f32, by look_ahead 6 to 12 % longer.
  const std::int64_t kept = most_of_kept_outputs(graph, target);
  const bool streams = kept > 0 && (request.most_elements == 0 || request.most_elements > kept);
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
