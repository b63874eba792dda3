// What stands behind a kernel, in words.
#pragma once

#include <string>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// What stands behind a kernel, for people: the expression, the graph, the plan, which constant
/// matrices and why, bytes an element, the program and the source, which emit gave.
std::string explain_graph(const Graph& graph, const Target& target, const Compiled& compiled,
                          const Source& source);
}  // namespace chainfold::codegen
