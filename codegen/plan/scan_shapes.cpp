// Shapes of the runs and blocks of scans.
#include "chainfold/codegen/plan/scan_shapes.hpp"

#include <algorithm>
#include <numeric>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

std::optional<RunShape> choose_run(const Graph& graph, std::int64_t segment, int rows, int widest) {
  for (int width = widest; width >= 1; width /= 2) {
    if (!lanes_keep_ends(graph, segment, width) && !rows_hold_segments(segment, width)) continue;
    const std::int64_t row = std::int64_t{kWarpWidth} * width;
    const std::int64_t unit = width / std::gcd(segment, std::int64_t{width});
    std::optional<RunShape> best;
    double best_share = 0;
    // As many segments as leave the fewest lanes without work; of equals the fewest.
    for (std::int64_t k = unit; k <= row * rows / segment; k += unit) {
      const std::int64_t needed = (k * segment + row - 1) / row;
      const double share = static_cast<double>(k * segment) / static_cast<double>(needed * row);
      const bool enough = needed == rows || k + unit > row * rows / segment;
      if (share > best_share + 0.01 || (enough && share >= best_share - 0.01)) {
        best = {.width = width, .segments = k, .rows = static_cast<int>(needed)};
        best_share = std::max(best_share, share);
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

RunShape choose_short_run(const Graph& graph, std::int64_t segment, const RunShape& most,
                          int least_rows) {
  // One row pays if nearly all of its lanes have work, two pay with three quarters of them
  // (docs/decisions/0048-short-segments.md).
  constexpr double kShares[] = {0.9, 0.75};
  for (int rows = least_rows; rows < most.rows && rows <= 2; ++rows) {
    const auto run = choose_run(graph, segment, rows, most.width);
    if (!run || run->width != most.width) continue;
    const double share = static_cast<double>(run->segments * segment) /
                         static_cast<double>(std::int64_t{kWarpWidth} * run->width * run->rows);
    if (share >= kShares[rows - 1]) return *run;
  }
  return most;
}

std::optional<GroupShape> choose_group(const Graph& graph, std::int64_t segment, int widest,
                                       int rows) {
  for (int width = widest; width >= 1; width /= 2) {
    const std::int64_t unit = width / std::gcd(segment, std::int64_t{width});
    const std::int64_t units = std::int64_t{kWarpWidth} * width * rows / segment / unit;
    if (units == 0) continue;
    if (unit == 1) return GroupShape{.width = width};
    if (lanes_keep_ends(graph, segment, width))
      return GroupShape{.width = width, .segments = unit * units};
  }
  return std::nullopt;
}

std::optional<BlockShape> choose_block(std::int64_t unit, std::int64_t row, int most_warps,
                                       int most_rows, int resident) {
  constexpr int kLeastRows = 4;  // shorter runs have too few loads on their way
  // Loss a warp of a block: in small blocks each warp waits for few others
  // (docs/tuned-values.md#values-that-wait).
  constexpr double kWait = 0.006;
  const bool waits = resident > 0;
  std::optional<BlockShape> best;
  double best_score = 0;
  for (int warps = 1; warps <= most_warps; ++warps) {
    // A multiprocessor with one block waits for its slowest warp. Two blocks with a third more
    // warps in all take less time, though they spill (docs/tuned-values.md#values-that-wait).
    const bool two = warps < resident && 2 * warps * 3 <= resident * 4;
    const int blocks = std::max(two ? 2 : 1, resident / warps);
    const double busy =
        waits ? (1 - kWait * warps) * std::min(1.0, static_cast<double>(blocks * warps) / resident)
              : 1;
    for (int depth = std::min(kLeastRows, most_rows); depth <= most_rows; ++depth) {
      const std::int64_t room = row * warps * depth, units = room / unit;
      const double score = busy * static_cast<double>(units * unit) / static_cast<double>(room);
      if (score <= best_score + (waits ? 0.01 : 0.03)) continue;
      best = {.warps = warps, .depth = depth, .blocks = blocks};
      best_score = score;
    }
  }
  return best;
}

}  // namespace chainfold::codegen
