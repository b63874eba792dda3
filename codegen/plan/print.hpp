// Plans as text.
#pragma once

#include <string>
#include <string_view>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// The stable text of a plan: with the graph's text and the target it identifies a kernel.
std::string print(const Plan& plan, const Graph& graph);

}  // namespace chainfold::codegen
