// Shapes of the runs and blocks of scans.
#pragma once

#include <cstdint>
#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Segments of a warp's run of at most so many rows, and the width of its loads.
struct RunShape {
  int width = 1;
  std::int64_t segments = 0;
  int rows = 1;
};
/// Nothing where a run holds no segment.
std::optional<RunShape> choose_run(const Graph& graph, std::int64_t segment, int rows, int widest);
/// The run of fewer rows than `most`, if it has the same loads and most of its lanes have work.
/// Runs of a row or two are many on their way at once, and none ends much later than the others.
RunShape choose_short_run(const Graph& graph, std::int64_t segment, const RunShape& most,
                          int least_rows);
/// Segments of a block of `rows` rows and the widest loads with which it holds them; none: one.
struct GroupShape {
  int width = 1;
  std::int64_t segments = 0;
};
std::optional<GroupShape> choose_group(const Graph& graph, std::int64_t segment, int widest,
                                       int rows);
/// A block's warps and their rows.
struct BlockShape {
  int warps = 1, depth = 1;
  int blocks = 0;  ///< at least so many a multiprocessor; 0: not said
};
/// The block that leaves the fewest lanes without work; of equals the smallest. It holds a multiple
/// of `unit` elements, with rows of `row`. `resident`: where values wait in registers, the warps of
/// a multiprocessor that have enough; 0: nothing waits. Warps that make no block are without work,
/// too, and warps wait for their block's others.
std::optional<BlockShape> choose_block(std::int64_t unit, std::int64_t row, int most_warps,
                                       int most_rows, int resident);
/// Rows of a warp's run, at most: they have to fit into registers, with what is made of them.
inline constexpr int kMostRunRows = 32;
/// The same of a CPU's tile of segments, which waits in its cache where registers are too few.
inline constexpr int kCpuMostRunRows = 64;
inline int most_run_rows(const Target& target, Strategy strategy) {
  const bool tile = target.is_cpu() && strategy == Strategy::scan_tile;
  return tile ? kCpuMostRunRows : kMostRunRows;
}
/// Rows of a CPU's range at once: so many are added up before a state is merged, or are asked
/// together whether quick folds serve. States of other folds are merged row by row, and more rows
/// at once are only more code.
inline constexpr int kCpuRangeDepth = 8;
/// Warps of a tile of several rows. A multiprocessor has several such tiles: while one waits,
/// others are under way.
inline constexpr int kTileWarps = 8;

}  // namespace chainfold::codegen
