// Graphs as text.
#pragma once

#include <string>

#include "chainfold/codegen/graph/fold_print.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// The stable text of a graph. Values of literals are left out: it identifies the kernel.
std::string print(const Graph& graph);

}  // namespace chainfold::codegen
