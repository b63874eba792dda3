// What stands behind a kernel, in words.
#pragma once

#include <string>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// A text about a kernel: the expression, the graph, the plan, bytes an element, the program and
/// the source. It says which constant matrices each fold has, and why. `source` is what emit gave.
std::string explain_graph(const Graph& graph, const Target& target, const Compiled& compiled,
                          const Source& source);
}  // namespace chainfold::codegen
