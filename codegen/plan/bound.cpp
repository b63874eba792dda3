#include "chainfold/codegen/plan/bound.hpp"

#include <algorithm>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/target/mma_table.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

bool asks_for_digits(const Graph& graph, const Plan& plan) {
  constexpr std::int64_t kKept = std::int64_t{1} << 13;
  const bool any = plan.strategy == Strategy::parts || takes_stretches(plan.strategy);
  if (!any && plan.segment <= kKept) return false;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.part != 0; });
}

double error_bound(const Graph& graph, const Plan& plan, const Target& target, std::size_t fold) {
  const Fold& f = graph.folds[fold];
  if (!is_float(f.result()) || !f.linear) return 0;
  if (plan.strategy == Strategy::columns) {  // a batch of loads, then states
    return 2 + (plan.load_rows_first ? ceil_log2(plan.depth) : plan.depth / 2);
  }
  if (plan.strategy == Strategy::elements) return 0;  // nothing is added
  if (takes_stretches(plan.strategy)) {
    // A lane's elements of a row without heads or of a batch, then states or the lanes' values. Few
    // elements are added one behind the other.
    const int lanes = 2 + ceil_log2(static_cast<std::int64_t>(plan.load_width) * plan.depth);
    if (plan.combine_states) return lanes;
    return std::max(lanes + ceil_log2(kWarpWidth), plan.path.apart - 1);
  }
  const FoldPlan& how = plan.folds[fold];
  double bound = 0;
  int lanes = plan.lanes_per_segment;
  const std::int64_t step = static_cast<std::int64_t>(kWarpWidth) * plan.load_width;
  // States of loops, or as many further levels: what has no loop is two batches and a rest at most.
  static_assert(Plan::kMostBatches <= 2);
  bool states = plan.strategy == Strategy::parts || plan.edges || plan.segment > step * plan.depth;
  if (how.unit == Unit::simt) {
    bound += ceil_log2(static_cast<std::int64_t>(plan.load_width) * plan.depth);
  } else {
    const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
    const int steps = plan.load_width / row.elements(Operand::b);
    const double one =
        mma_error_bound(row, target.arch) * (f.result() == DType::f64 ? 0x1p29 : 1.0);
    const bool chained = row.rounding != MmaRounding::toward_zero;
    bound += chained ? one * steps : one + ceil_log2(steps);
    states = states || (!chained && plan.depth > 1);
    if (chained) bound += ceil_log2(plan.depth);
    lanes = std::max(1, lanes / 4);  // the quads' other lanes add exact zeros
  }
  if (states) bound += 2;
  if (!plan.combine_states) bound += ceil_log2(lanes);
  return bound;
}

double allowed_error(const Graph& graph, const Target& target, Accuracy accuracy,
                     std::int64_t segment, std::size_t fold) {
  if (graph.folds[fold].result() ==
      DType::f64) {  // 4 log2(n) u; n up to 2^40 where it is not known
    return 4.0 * (segment == 0 ? 40 : std::max(1, ceil_log2(segment)));
  }
  if (accuracy == Accuracy::fast || accuracy == Accuracy::as_published) return 64;
  return target.arch == 0 || target.arch >= 90 ? 16 : 32;
}

std::optional<double> proven_bound(const Plan& plan, const Graph& graph, std::size_t fold) {
  const Fold& f = graph.folds[fold];
  if (!is_float(f.result()) || (f.tile && !f.linear)) return 0;
  if (!f.linear || rounds_sums(plan)) return std::nullopt;
  return plan.folds[fold].error_bound_u;
}

}  // namespace chainfold::codegen
