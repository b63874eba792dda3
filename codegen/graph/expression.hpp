// Graphs as expressions in infix form, as they were written.
#pragma once

#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// The expression in infix form: "over(segments(64), sum(f32(x)) / 64)".
std::string print_expression(const Graph& graph);
/// Those of its outputs, as they were written.
std::vector<std::string> output_expressions(const Graph& graph);

}  // namespace chainfold::codegen
