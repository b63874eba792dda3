// legalize: a graph as a target computes it. The first pass over a graph; what follows it is given
// its result.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The graph as `target` computes it: the same inputs, parameters, literals, outputs and values, by
/// operations that cost it less. What follows is given this graph.
Graph legalize(const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
