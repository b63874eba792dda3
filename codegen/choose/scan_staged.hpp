// look_back whose tiles come through shared memory: when it serves better, and its shapes.
#pragma once

#include <cstdint>
#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// look_back whose tiles come through shared memory for the most part, so that more bytes are on
/// their way than registers hold. Nothing where registers serve as well, as far as rules can tell.
/// `heads`: tiles are of all segments.
std::optional<PlanChoice> staged_scan_choice(const Graph& graph, const Target& target,
                                             const PlanRequest& request, bool mma = false,
                                             bool heads = false);
/// Elements of the whole input up to which smaller tiles serve better (PlanRequest::size_limit); 0:
/// no such class.
std::int64_t small_tile_limit(const Graph& graph, const Target& target);
/// Whether a minimum or a maximum is all that is scanned.
bool scans_extreme(const Graph& graph);
/// Whether its one fold finds the place of the smallest or largest element.
bool scans_places(const Graph& graph);
/// Whether a field of a state takes more than a register.
bool has_wide_states(const Graph& graph);

}  // namespace chainfold::codegen
