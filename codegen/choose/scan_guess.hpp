// The best guess of each strategy of scans.
#pragma once

#include <cstdint>
#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The best guess of one strategy, if it may be legal; with tensor cores or, as no measurement
/// tells otherwise yet, without.
std::optional<PlanChoice> scan_choice_of(Strategy strategy, const Graph& graph,
                                         const Target& target, const PlanRequest& request,
                                         bool mma = false);
/// Whether merges of states are so long that one row of them is enough code.
bool has_long_merges(const Graph& graph);
/// Warps of a processor that have registers enough for `rows` rows of `width` elements and what is
/// made of them.
int scan_warps(const Graph& graph, const Target& target, int rows, int width);
/// Rows of a run, and of a tile that few registers hold.
inline constexpr int kRunRows = 8, kTileRows = 4, kMostGroupRows = 12;
/// Rows of a CPU's tiles of scans in both directions, which are sooner than a pass over memory for
/// each where segments fit (ns an element of a Zen 4's caches, f32 of 33, 96, 480 and 1008: 0.43,
/// 0.40, 0.62 and 0.70, by propagate 4.2, 1.65, 0.80 and 0.65).
inline constexpr int kCpuRowsBothWays = 16;
/// Rows of the smallest tile of whole segments and whole rows of one element a lane, where a CPU's
/// segments of plain folds are scanned sooner by those: lines of memory are not shared by tiles
/// then and may pass the caches by. 0: each by itself, or tiles of any rows. Measured on a Zen 4,
/// two threads, of a copy, without and with: f32 of 5 (5 rows) 0.69 and 0.98, of 31 0.73 and 0.97,
/// of 33 0.77 and 1.06, of 48 (3 rows) 0.76 and 1; f16 of 5 0.72 and 0.92, of 31 0.53 and 0.5, of
/// 33 0.46 and 0.67, of 40 (5) 0.55 and 0.82, of 68 (17) 0.6 and 0.81, of 100 (25) 0.65 and 0.68,
/// of 63 (63 rows) 0.68 and 0.64, of 70 (35) 0.42 and 0.49. Longer ones of more bytes share rows
/// (moves_to_lines), which are on lines wherever outputs begin.
int rows_of_whole_tile(const Graph& graph, std::int64_t segment);

}  // namespace chainfold::codegen
