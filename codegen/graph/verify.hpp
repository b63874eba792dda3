// What every graph keeps to (the rules at the head of graph.hpp).
#pragma once

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// Throws InternalError at the first violation of the rules above.
void verify(const Graph& graph);

}  // namespace chainfold::codegen
