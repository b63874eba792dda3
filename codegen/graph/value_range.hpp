// How large the values of a graph may become, as far as the types of its inputs tell.
#pragma once

#include <vector>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// An e for which every finite value of the node is below 2^e in absolute terms. It is the limit of
/// the node's type where nothing better is known.
int exponent_bound(const Graph& graph, NodeId id);

/// Which folds have a guard (Fold::guard) that values of theirs may reach, whatever their number.
/// Sums of f16, of bytes and of their products, e.g., never do.
std::vector<bool> guarded_folds(const Graph& graph);
/// The graph with these folds by their elements (by_elements).
Graph by_elements(const Graph& graph, const std::vector<bool>& folds);

}  // namespace chainfold::codegen
