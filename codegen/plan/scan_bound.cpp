// What prefixes of sums may err: proven bounds of plans of scans.
#include "chainfold/codegen/plan/scan_bound.hpp"

#include <algorithm>
#include <limits>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/target/const_matrix.hpp"
#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

namespace {

/// The longest ways of an element through rounded additions to a prefix, to first order, in units.
double quads_error_bound(const Plan& plan, const Target& target, const FoldPlan& how) {
  const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
  // One instruction, and the sum of a lane's halves.
  const double quad = mma_sum_error_bound(row, target.arch) + (QuadLayout(row).halves > 1 ? 1 : 0);
  const bool tile = plan.strategy == Strategy::scan_tile;
  if (tile && plan.segment <= quad_of(plan)) return quad;
  const std::int64_t of_row = std::int64_t{kWarpWidth} * plan.load_width;
  const bool crosses = !tile || of_row % plan.segment != 0;
  constexpr int kQuadLevels = 3;
  const int levels = crosses ? kQuadLevels : ceil_log2(plan.segment / quad_of(plan));
  // Then it is added to a prefix, behind a carry as the high part of a state.
  constexpr double kSecondOrder = 0.25;
  double bound = quad + levels + 1 + (crosses ? 1 + kSecondOrder : 0);
  if (!tile) {  // from the fold of the run before
    const double total = quad + (plan.combine_states ? 0 : 1 + kQuadLevels);
    bound = std::max(bound, total + 2 + kSecondOrder);
  }
  return bound;
}

/// The same of what lanes scan by themselves. Loads are folded by trees, and lanes' totals are
/// states or their values. What comes before a load is a state's value and loads that are added one
/// by one. Prefixes of a load's elements are as many additions more as their numbers have binary
/// digits.
double blocked_error_bound(const Plan& plan, const Fold& fold) {
  const int load = ceil_log2(plan.load_width), staged = plan.scan.staged_rows;
  const int loads = ceil_log2(std::max(staged, plan.depth - staged));
  const int lanes = plan.combine_states ? 0 : ceil_log2(kWarpWidth);
  // What a state rounds of it and of itself; of f64 what it becomes as a value.
  const double state = sums_wide(fold) ? 1 : 2;
  const int behind = kRowsAState - 1 + std::max(load, 1);
  return load + std::max(loads + lanes, kRowsAState - 1) + state + behind;
}

}  // namespace

double scan_error_bound(const Graph& graph, const Plan& plan, const Target& target,
                        std::size_t fold) {
  const Fold& f = graph.folds[fold];
  if (!is_float(f.result()) || !f.linear) return 0;
  if (plan.folds[fold].unit == Unit::mma_scan) {
    Plan lanes = plan;  // what is not finite
    lanes.folds[fold] = {};
    return std::max(quads_error_bound(plan, target, plan.folds[fold]),
                    scan_error_bound(graph, lanes, target, fold));
  }
  constexpr int kLaneLevels = 5;
  // Rounded additions within a row; then what a state rounds of it and of itself, and what is added
  // to that.
  constexpr double kBehindCarry = 4;
  // A lane's fold has log2 of its elements, which go on through the lanes. A prefix that ends
  // within the lane has up to 2 log2 of them less 2, and goes no further. That is no more than the
  // row's as long as a load has at most 2^7 elements. With the addition behind it, it is no more
  // than `own` below as long as a load has at most 16.
  int row = ceil_log2(plan.load_width) + kLaneLevels;
  const std::int64_t of_row = std::int64_t{kWarpWidth} * plan.load_width;
  // What is added of another segment, or of none, is zero.
  const int own = plan.segment > 0 ? ceil_log2(plan.segment) + 1 : std::numeric_limits<int>::max();
  row = std::min(row, own);
  // Of a range's batch its rows, too, are added up. An element of a lane that is not its last goes
  // through one addition more, and no rows.
  const int of_lane = ceil_log2(plan.scan.range_width);
  const int of_batch = of_lane + kLaneLevels + ceil_log2(plan.scan.range_depth);
  if (plan.strategy == Strategy::scan_tile) {
    const bool crosses = of_row % plan.segment != 0;
    // The last tile's segments are ranges, of batches of rows.
    const bool batches = plan.scan.range_depth > 1 && plan.segment > kWarpWidth;
    const double range = batches ? of_batch + kBehindCarry : 0;
    return std::max(row + (crosses ? kBehindCarry : 1), range);
  }
  if (plan.scan.blocked) {
    Plan rows = plan;  // the last one's
    rows.scan.blocked = false;
    return std::max(blocked_error_bound(plan, f), scan_error_bound(graph, rows, target, fold));
  }
  const int rows = plan.scan.in_registers ? plan.depth : plan.scan.range_depth;
  int total =
      ceil_log2(plan.scan.in_registers ? plan.load_width : plan.scan.range_load) + ceil_log2(rows);
  if (!plan.combine_states) total += kLaneLevels;
  total = std::min(total, own);
  const int range = std::min(of_batch, own);
  // Rows before it since a state was taken are added up first. A
  // segment that begins with a row has only its own.
  const bool begins = plan.segment > 0 && !plan.scan.heads && plan.scan.tile_segments == 0;
  const std::int64_t rows_before = begins ? (plan.segment - 1) / of_row : plan.depth - 1;
  row += static_cast<int>(
      std::min({rows_before, std::int64_t{plan.depth} - 1, std::int64_t{kRowsAState} - 1}));
  row = plan.scan.in_registers ? std::max(row, range) : range;
  return std::max(row, total) + kBehindCarry;
}

}  // namespace chainfold::codegen
