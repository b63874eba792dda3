// The best guess of rows: their loads, warps and unit, and the lanes that share a segment.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The warps, loads and unit of segments that need edges, from a choice for others. False where
/// loads are elements instead, which need none.
[[nodiscard]] bool choose_edges(PlanChoice& choice, const Graph& graph, const Target& target,
                                std::int64_t segment, int width);
/// The loads in flight, warps and unit of a GPU's segments of one fold that take many of the widest
/// loads. Nothing changes for others.
void choose_depth(PlanChoice& choice, const Graph& graph, const Target& target,
                  std::int64_t segment, int width);
/// PlanChoice::lanes and ::rows of segments that vectors' lanes take in loads of `width` elements,
/// and that are one batch. Of all numbers of lanes it is the one with the fewest operations a
/// segment. Fewer lanes make merges of rows rarer, and leave fewer of the last load's lanes empty.
/// But where a group of lanes is less than a register, registers are put together out of several
/// loads. Of other segments, and of folds in order, only the number of rows is limited. Nothing
/// changes on targets without vectors.
void choose_lanes(PlanChoice& choice, const Graph& graph, const Target& target,
                  std::int64_t segment, int width);
/// The best guess of rows.
PlanChoice rows_choice(const Graph& graph, const Target& target, const PlanRequest& request);

}  // namespace chainfold::codegen
