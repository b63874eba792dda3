// Minima and maxima of floats by the order of integers.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// The same graph, with minima and maxima of floats computed from those of integers: for targets
/// that have these cheaper (Target::integer_order). Folds by min.f32 and max.f32 are: those of f16,
/// of bf16, and of f32 where both are folded. Scans by them are: those of f16 and bf16.
Graph with_integer_minima(const Graph& graph);

}  // namespace chainfold::codegen
