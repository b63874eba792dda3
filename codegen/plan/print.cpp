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

std::string_view name_of(Strategy strategy) {
  switch (strategy) {
    case Strategy::rows: return "rows";
    case Strategy::elements: return "elements";
    case Strategy::parts: return "parts";
    case Strategy::staged: return "staged";
    case Strategy::columns: return "columns";
    case Strategy::scan_tile: return "scan_tile";
    case Strategy::scan_run: return "scan_run";
    case Strategy::scan_block: return "scan_block";
    case Strategy::look_back: return "look_back";
    case Strategy::look_ahead: return "look_ahead";
    case Strategy::propagate: return "propagate";
    default:
      return (is_published_scan(strategy) ? published_scan(strategy) : published(strategy))->name;
  }
}

std::string print(const Plan& plan, const Graph& graph) {
  std::string text = fmt::format(
      "plan {{\n  strategy {}\n  segment {}\n  load_width {} elements a lane{}, {} in flight, base "
      "aligned to {} bytes\n",
      name_of(plan.strategy), plan.segment > 0 ? std::to_string(plan.segment) : "known at launch",
      plan.load_width, plan.straddle ? " that segments straddle" : "", plan.depth,
      plan.base_alignment);
  if (plan.strategy == Strategy::staged) {
    text += fmt::format(
        "  stages {}, burst {}{}, blocks {}, {} a processor, {} bytes of shared memory\n",
        plan.stages, plan.burst,
        plan.one_burst() ? ", one a block"
        : plan.late > 0  ? fmt::format(", {} rounds a late block", plan.late)
                         : "",
        plan.blocks, plan.resident, staged_bytes(plan, graph));
  }
  if (plan.strided) text += "  strides of the inputs given at launch\n";
  if (is_published(plan.strategy)) {
    text += print_published(plan);
  } else if (is_published_scan(plan.strategy)) {
    text += print_published_scan(plan);
  } else if (is_scan(plan.strategy)) {
    text += print_scan(plan);
  } else if (plan.strategy == Strategy::columns) {
    text += fmt::format(
        "  lanes_per_column {}, runs {}, {} columns a block{}{}{}{}\n  part_quantum {} rows, "
        "parts_wanted "
        "{}\n",
        plan.lanes_per_segment, plan.rows, plan.columns_per_block(),
        plan.phases > 1 ? fmt::format(", rows in {} phases", plan.phases) : "",
        plan.resident > 0 ? fmt::format(", {} a processor", plan.resident) : "",
        plan.strip > 0 ? ", states in scratch" : "",
        plan.load_rows_first ? ", all rows loaded first" : "", plan.part_quantum,
        plan.parts_wanted);
  } else if (plan.strategy == Strategy::rows || plan.strategy == Strategy::staged) {
    text += fmt::format("  lanes_per_segment {}, rows {}{}{}\n", plan.lanes_per_segment, plan.rows,
                        plan.load_rows_first ? ", all rows loaded first" : "",
                        plan.vector_lanes && plan.rows > 1 ? ", merged by patterns of two" : "");
  } else if (plan.strategy == Strategy::parts) {
    text += fmt::format(
        "  part_quantum {}, parts_wanted {}{}{}{}\n", plan.part_quantum, plan.parts_wanted,
        plan.few_parts > 0 ? fmt::format(", {} of few elements", plan.few_parts) : "",
        plan.wave > 0 ? fmt::format(", {} at once", plan.wave) : "",
        plan.cluster > 0 ? ", of one cluster" : "");
  }
  text += fmt::format("  warps {}, edges {}, combine {}\n", plan.warps,
                      plan.edges ? "scalar" : "none", plan.combine_states ? "states" : "values");
  if (plan.takes_lines) text += "  loads take whole lines\n";
  if (plan.strategy == Strategy::rows && plan.stream_from > 0)
    text += fmt::format("  outputs of {} bytes and more pass the caches by\n", plan.stream_from);
  if (plan.half_vectors) text += "  vectors of half a register do\n";
  if (plan.strands > 1)
    text += fmt::format("  memory is read in {} places in turn\n", plan.strands);
  if (plan.read_ahead > 0) text += fmt::format("  reads {} elements ahead\n", plan.read_ahead);
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
  text += fmt::format(
      "  accuracy {}, determinism {}, nonfinite {}, guard {}\n",
      kAccuracy[static_cast<int>(plan.accuracy)], kDeterminism[static_cast<int>(plan.determinism)],
      plan.nonfinite == NonFinite::ieee ? "ieee" : "assume_finite", plan.guard ? "on" : "off");
  const bool keeps_states = plan.strategy == Strategy::parts ||
                            (plan.strategy == Strategy::columns && plan.launches == 2) ||
                            (is_scan(plan.strategy) && plan.launches > 1);
  text += fmt::format("  launches {}, scratch {} bytes a part, carry {} bytes\n}}\n", plan.launches,
                      keeps_states ? plan.state_bytes : 0, plan.state_bytes);
  return text;
}

}  // namespace chainfold::codegen
