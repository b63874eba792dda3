#include "chainfold/codegen/plan/verify.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

void verify(const Plan& plan, const Graph& graph, const Target& target) {
  auto require = [&](bool holds, const char* rule) {
    if (!holds) throw InternalError(fmt::format("illegal plan: {}", rule), print(plan, graph));
  };
  require(is_power_of_two(plan.load_width) && is_power_of_two(plan.lanes_per_segment) &&
              is_power_of_two(plan.rows),
          "load_width, lanes_per_segment and rows are powers of two");
  require(plan.lanes_per_segment <= kWarpWidth, "lanes_per_segment is at most a warp");
  require(plan.warps >= 1 && plan.warps <= target.max_warps, "warps fit the target");
  // Of hints only that the target can follow them: which are worth it, make_plan alone says.
  require(!plan.hints.evict_first || target.evict_first_bytes > 0,
          "loads may ask for lines to be given up");
  require(!plan.hints.half_vectors || target.vector_lanes,
          "lanes are elements of vectors of half a register");
  require(!plan.hints.screens || target.vector_lanes, "batches are compared by vectors");
  require(plan.hints.streams == 1 || !needs_order(graph),
          "elements in order are read in their order");
  require(plan.hints.read_ahead >= 0 && (plan.hints.read_ahead == 0 || target.is_cpu()),
          "a CPU's thread asks ahead");
  require(plan.strategy != Strategy::columns || plan.hints.streams == 1 ||
              plan.hints.streams == plan.depth,
          "the rows of a batch are read in as many places as they are, or in one");
  require(plan.hints.streams == 1 || (target.is_cpu() && is_power_of_two(plan.hints.streams) &&
                                      !(plan.strategy == Strategy::rows && plan.edges)),
          "a CPU's thread reads in several places, and rows of it have no edges");
  const bool by_blocks = plan.strategy == Strategy::rows && !plan.has_loop();
  require(by_blocks || plan.depth % plan.hints.streams == 0, "a batch's loads are dealt evenly");
  require(plan.depth >= 1 && plan.folds.size() == graph.folds.size(), "every fold has its plan");
  for (const GraphInput& input : graph.inputs) {
    const int bytes = plan.load_width * size_of(input.type);
    require(
        plan.load_width == 1 || bytes <= std::max(load_bytes(graph, target), size_of(input.type)),
        "loads fit the target");
    const bool anywhere = plan.staged.straddle || plan.columns.phases > 1 ||
                          target.accesses_anywhere || peels_memory(plan, graph);
    require(anywhere || bytes <= std::max(plan.base_alignment, size_of(input.type)),
            "loads fit the base alignment");
  }
  const StrategyRow& row = row_of(plan.strategy);
  if (is_scan(plan.strategy) || is_published(plan.strategy) || is_published_scan(plan.strategy))
    return row.verify(plan, graph, target, require);
  require(!has_scans(graph) || plan.strategy == Strategy::merge_path,
          "scans have plans of their own");
  const bool fits =
      plan.load_width == 1 || (plan.segment > 0 && plan.segment % plan.load_width == 0);
  const bool side_by_side = plan.columns.phases > 1 || plan.strategy == Strategy::elements ||
                            takes_stretches(plan.strategy);
  require(fits || plan.edges || plan.staged.straddle || side_by_side ||
              (plan.has_partial_loads() && target.accesses_anywhere),
          "segments begin and end on the load width, or edges are peeled or masked");
  require(!plan.staged.straddle || (plan.strategy == Strategy::staged && graph.inputs.size() == 1),
          "only one input, in shared memory, is read by loads that its segments straddle");
  require(!plan.strided || plan.segment >= 1, "a stride lies between segments");
  require(plan.mean_loads == 0 || (target.vector_lanes && (plan.strategy == Strategy::rows ||
                                                           plan.strategy == Strategy::parts)),
          "rows and parts of vector registers have means of few loads");
  require(!plan.vector_lanes || target.vector_lanes, "lanes are elements of the target's vectors");
  row.verify(plan, graph, target, require);
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const FoldPlan& how = plan.folds[f];
    if (how.unit == Unit::simt) continue;
    require(how.mma_row >= 0 && target.has_mma, "the target has the matrix instruction");
    const MmaRow& mma = mma_table()[static_cast<std::size_t>(how.mma_row)];
    require(target.arch >= mma.first_arch, "the architecture has the matrix instruction");
    require(plan.load_width % mma.elements(Operand::b) == 0, "a load fills whole fragments");
    const bool small = plan.shares_quads();
    require(how.unit == Unit::mma_ones || !small, "the diagonal holds sums of whole quads");
    require(!small ||
                plan.segment == static_cast<std::int64_t>(plan.lanes_per_segment) * plan.load_width,
            "segments below a quad fill their lanes");
    require(!small || mma.rounding == MmaRounding::exact || plan.promises.guard ||
                plan.promises.nonfinite == NonFinite::assume_finite,
            "segments that share a quad are guarded against each other's NaN");
  }
}

}  // namespace chainfold::codegen
