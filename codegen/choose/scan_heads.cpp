// Plans of look_back whose tiles are of all segments.
//
// A segment whose size is no multiple of a load is read by narrower loads, unless blocks hold
// several that begin on loads together. Tiles of one segment rarely share it evenly. Tiles of all
// segments have the widest loads and are all full, whatever the size is.
#include "chainfold/codegen/choose/scan_heads.hpp"

#include "chainfold/codegen/choose/scan_guess.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

/// The first architecture that has them: older ones were never measured, and keep the plans that
/// wait least.
constexpr int kFirstArch = 80;
/// Whether tiles with copies under way are sooner done than `plan`
/// (docs/decisions/0044-tiles-of-all-segments.md).
bool gains_from_tiles(const Plan& plan, const Graph& graph, const Target& target, int widest) {
  const TunedScans& tuned = tuned_for(target).scans;
  // With interleaved tickets few of the tiles that are there wait for each other.
  if (plan.scan.interleaved > 0) return false;
  // Whole tiles have no code for others.
  const bool one_step = scans_extreme(graph) || scans_places(graph);
  if (plan.scan.staged_rows > 0 && !plan.scan.ragged && one_step) return false;
  // States of 64 bits beside heads take more registers than rows of as wide elements would.
  if (plan.scan.staged_rows > 0 && plan.load_width == widest && has_wide_states(graph) &&
      !scans_places(graph) && widest_input(graph) == widest_of_scan(graph))
    return false;
  if (plan.strategy != Strategy::scan_block) return plan.strategy != Strategy::scan_tile;
  if (plan.scan.tile_segments == 0) return plan.warps >= tuned.slow_warps;
  if (plan.load_width < widest) return true;
  // Tiles of wide states are shorter.
  return plan.warps >= (has_wide_states(graph) ? tuned.slow_warps : tuned.slow_warps_of_several);
}

}  // namespace

std::optional<PlanChoice> heads_scan_choice(const Graph& graph, const Target& target,
                                            const PlanRequest& request) {
  if (!heads_serve(graph, request.segment)) return std::nullopt;
  auto choice = staged_scan_choice(graph, target, request, false, true);
  if (!choice) choice = scan_choice_of(Strategy::look_back, graph, target, request);
  if (choice) choice->heads = 1;
  return choice;
}

std::optional<PlanChoice> better_by_heads(const Graph& graph, const Target& target,
                                          const PlanRequest& request, const Plan& plan) {
  if (target.is_cpu() || target.arch < kFirstArch || request.segment < 1) return std::nullopt;
  const int widest = widest_load(target, request, widest_of_scan(graph));
  const auto choice = heads_scan_choice(graph, target, request);
  if (!choice || !make_plan(graph, target, request, *choice)) return std::nullopt;
  if (choice->staged > 0)
    return gains_from_tiles(plan, graph, target, widest) ? choice : std::nullopt;
  // Loads of half the width serve, where no block waits for another.
  const bool waits = plan.strategy == Strategy::look_back || plan.strategy == Strategy::propagate;
  if (plan.load_width * (waits ? 1 : 2) >= widest) return std::nullopt;
  return choice;
}

}  // namespace chainfold::codegen
