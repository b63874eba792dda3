// The best guess for columns.
#pragma once

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The best guess of columns, which have no other strategy: in phases where rows begin off wide
/// loads and that is legal, else narrow.
PlanChoice columns_choice(const Graph& graph, const Target& target, const PlanRequest& request);
/// The guess whose loads are no wider than every row allows. The phased one has warps that take
/// rows that begin alike, where that is legal and its loads are wider.
PlanChoice narrow_columns_choice(const Graph& graph, const Target& target,
                                 const PlanRequest& request);
std::optional<PlanChoice> phased_columns_choice(const Graph& graph, const Target& target,
                                                const PlanRequest& request);

}  // namespace chainfold::codegen
