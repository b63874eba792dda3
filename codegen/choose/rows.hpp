// How rows are laid out: the width of their loads, and the lanes that share a segment.
#pragma once

#include <cstdint>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Loads of one input one after the other, each of `width` elements a lane, that a warp's segment
/// takes.
[[nodiscard]] std::int64_t loads_of(std::int64_t segment, int width);

/// Elements of a load: of those that all pointers allow, and of those that edges make room for,
/// which are more where one input alone may begin anywhere.
struct Widest {
  int aligned = 1, peeled = 1;
};
[[nodiscard]] Widest widest_of(const Graph& graph, const Target& target, const PlanRequest& request,
                               int bytes_at_most);

/// The width of a row's loads, and whether it needs scalar edges.
[[nodiscard]] std::pair<int, bool> row_width(std::int64_t segment, const Widest& widest,
                                             const Target& target);

/// Whether a plan with edges has wider loads than all pointers allow: its one input's edges then
/// end and begin where memory is aligned, wherever its elements are.
[[nodiscard]] bool peels_memory(const Plan& plan, const Graph& graph);

/// The warps, loads and unit of segments that need edges, from a choice for others. False where
/// loads are elements instead, which need none.
[[nodiscard]] bool place_edges(PlanChoice& choice, const Graph& graph, std::int64_t segment,
                               int width);

/// The loads in flight, warps and unit of a GPU's segments of one fold that take many of the widest
/// loads. Nothing changes for others.
void place_depth(PlanChoice& choice, const Graph& graph, const Target& target, std::int64_t segment,
                 int width);

/// PlanChoice::lanes and ::rows of segments that vectors' lanes take in loads of `width` elements,
/// and that are one batch: as few operations a segment as can be, of all numbers of lanes. Fewer
/// lanes make merges of rows rarer, and leave fewer of the last load's lanes empty; but where a
/// group of lanes is less than a register, registers are put together out of several loads. Nothing
/// changes on targets without vectors, or where elements must be merged in order.
void place_lanes(PlanChoice& choice, const Graph& graph, const Target& target, std::int64_t segment,
                 int width);

/// What of a plan by rows follows from its choice and the widest loads. False where
/// the choice is not legal.
[[nodiscard]] bool place_rows(Plan& plan, const PlanChoice& choice, const Graph& graph,
                              const Target& target, const Widest& widest);

}  // namespace chainfold::codegen
