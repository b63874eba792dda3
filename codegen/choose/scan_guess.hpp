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
bool has_long_merges(const Graph& graph, const Target& target);
/// Warps of a multiprocessor that have registers enough for `rows` rows of `width` elements and
/// what is made of them.
int scan_warps(const Graph& graph, const Target& target, int rows, int width);
/// Rows of the smallest tile of whole segments and whole rows of one element a lane, where these
/// scan a CPU's plain folds sooner. Tiles then share no lines of memory, so that their lines may
/// take non-temporal stores. With 0 each segment is scanned by itself, or tiles are of any rows.
/// Longer segments of more bytes share rows (moves_to_lines), which are on lines wherever outputs
/// begin.
int rows_of_whole_tile(const Graph& graph, const Target& target, std::int64_t segment);

}  // namespace chainfold::codegen
