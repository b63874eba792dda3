// How a CPU folds moments: how many loads are taken at once, and how many rows side by side.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The depth and, where a segment takes more than one load, the rows of moments on a CPU. Nothing
/// changes beside folds whose states are not short, where a batch would be more code than it is
/// worth. Nor does it where moments are filtered, whose merges take as long as a batch.
void choose_moments(PlanChoice& choice, const Graph& graph, const Target& target, int width,
                    std::int64_t loads);

/// Loads of `width` elements that a lane has in flight of moments at most: of bytes those whose
/// values fit into registers.
int loads_of_moments(const Graph& graph, const Target& target, int width);

}  // namespace chainfold::codegen
