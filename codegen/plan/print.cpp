#include "chainfold/codegen/plan/print.hpp"

#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print_scan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::simt: return "simt";
    case Unit::mma_ones: return "mma P * data";
    case Unit::mma_diagonal: return "mma data * data, diagonal";
    case Unit::mma_scan: return "mma data * U";
  }
  return "?";
}

}  // namespace

std::string print(const Plan& plan, const Graph& graph) {
  std::string text = fmt::format(
      "plan {{\n  strategy {}\n  segment {}\n  load_width {} elements a lane{}, {} in flight, base "
      "aligned to {} bytes\n",
      name_of(plan.strategy), plan.segment > 0 ? std::to_string(plan.segment) : "known at launch",
      plan.load_width, plan.staged.straddle ? " that segments straddle" : "", plan.depth,
      plan.base_alignment);
  if (plan.strided) text += "  strides of the inputs given at launch\n";
  text += row_of(plan.strategy).print(plan, graph);
  text += fmt::format("  warps {}, edges {}, combine {}\n", plan.warps,
                      plan.edges ? "scalar" : "none", plan.combine_states ? "states" : "values");
  if (plan.hints.evict_first) text += "  loads take whole lines\n";
  if (plan.strategy == Strategy::rows && plan.hints.non_temporal_from > 0)
    text += fmt::format("  outputs of {} bytes and more pass the caches by\n",
                        plan.hints.non_temporal_from);
  if (plan.hints.half_vectors) text += "  vectors of half a register do\n";
  if (plan.hints.screens) text += "  places are looked for in batches with better values\n";
  if (plan.hints.streams > 1)
    text += fmt::format("  memory is read in {} places in turn\n", plan.hints.streams);
  if (plan.hints.read_ahead > 0)
    text += fmt::format("  reads {} elements ahead\n", plan.hints.read_ahead);
  if (plan.mean_loads > 0) text += fmt::format("  means of {} loads a lane\n", plan.mean_loads);
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const FoldPlan& how = plan.folds[f];
    text += fmt::format("  fold {}: {} on {}", f, graph.folds[f].name, name_of(how.unit));
    if (how.unit != Unit::simt)
      text += fmt::format(" ({})", mma_table()[static_cast<std::size_t>(how.mma_row)].name);
    const Fold& fold = graph.folds[f];
    if (const std::optional<double> bound = proven_bound(plan, graph, f); !bound) {
      text += fold.linear ? ", error bound none proven (as published)\n" : ", no bound proven\n";
    } else {
      const bool exact = !is_float(fold.result()) || !fold.linear;
      text += exact ? ", exact\n" : fmt::format(", error bound {:g} u\n", *bound);
    }
  }
  constexpr const char* kAccuracy[] = {"exact", "reproducible", "accurate", "fast", "as_published"};
  constexpr const char* kDeterminism[] = {"not_guaranteed", "run_to_run", "gpu_to_gpu"};
  text += fmt::format("  accuracy {}, determinism {}, nonfinite {}, guard {}\n",
                      kAccuracy[static_cast<int>(plan.promises.accuracy)],
                      kDeterminism[static_cast<int>(plan.promises.determinism)],
                      plan.promises.nonfinite == NonFinite::ieee ? "ieee" : "assume_finite",
                      plan.promises.guard ? "on" : "off");
  const bool keeps_states = plan.strategy == Strategy::parts ||
                            (plan.strategy == Strategy::columns && plan.launches == 2) ||
                            (is_scan(plan.strategy) && plan.launches > 1);
  text += fmt::format("  launches {}, scratch {} bytes a part, carry {} bytes\n}}\n", plan.launches,
                      keeps_states ? plan.state_bytes : 0, plan.state_bytes);
  return text;
}

}  // namespace chainfold::codegen
