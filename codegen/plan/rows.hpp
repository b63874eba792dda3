// Plans by rows: the width of their loads, the lanes that share a segment, and what follows from a
// choice.
#pragma once

#include <cstdint>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Loads of one input one after the other, each of `width` elements a lane, that a warp's segment
/// takes.
[[nodiscard]] std::int64_t loads_of(std::int64_t segment, int width);
[[nodiscard]] Widest widest_of(const Graph& graph, const Target& target, const PlanRequest& request,
                               int bytes_at_most);
/// The width of a row's loads, and whether it needs scalar edges.
[[nodiscard]] std::pair<int, bool> row_width(std::int64_t segment, const Widest& widest,
                                             const Target& target);
/// Whether a plan with edges has wider loads than all pointers allow. Its one input's edges then
/// end and begin where memory is aligned, wherever its elements are.
[[nodiscard]] bool peels_memory(const Plan& plan, const Graph& graph);
/// The lanes that one load of a segment needs.
int lanes_of_load(std::int64_t segment, int width);
/// Loads of a segment that each of its lanes makes.
std::int64_t loads_of_lanes(std::int64_t segment, int width, int lanes);
/// Bytes of an output from which on its stores are non-temporal (PlanHints::non_temporal_from); 0:
/// never. Memory is read before what is stored to it by way of a cache, which matters where results
/// are many. Caches keep none of them where all that is read and stored is twice what they hold.
/// Kernels have a copy of their code for non-temporal stores, which only lengthens compilations
/// where memory waits anyway.
std::int64_t stream_from(const Graph& graph, const Target& target, std::int64_t segment);

/// Its row of the table of strategies.
StrategyRow rows_strategy();

}  // namespace chainfold::codegen
