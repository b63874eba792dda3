// What a CPU's vectors take for what a graph does to its elements: time, and code.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// Merges of a row of lanes by a scan: five steps across them, the row's total and the carry.
inline constexpr std::int64_t kRowMerges = 7;

/// What a scan does with a row of lanes, in additions; about. A running sum takes kRowMerges.
[[nodiscard]] std::int64_t additions_of(const Graph& graph);

/// Instructions, about, for one vector of a warp's elements, of each input one, from after it is
/// loaded until it is merged. The width of a target's registers has no part in it: plans are to be
/// the same for all.
[[nodiscard]] std::int64_t instructions_of(const Graph& graph);

/// Whether a thread computes with an element longer than memory takes to bring it.
[[nodiscard]] bool computes_slowly(const Graph& graph);

/// Loads of `width` elements a lane that one piece of code folds, at most; a power of two. More
/// would only be code.
[[nodiscard]] int tile_loads(const Graph& graph, int width);

}  // namespace chainfold::codegen
