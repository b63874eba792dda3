// How many loads of moments share a mean.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Plan::mean_loads of loads of so many elements. A mean that lanes share costs a CPU nine
/// exchanges and additions a row; means of their own make a merge of two rows nine instructions
/// instead of three. 0 on GPUs, which wait for memory either way, and where all moments are
/// filtered.
[[nodiscard]] int mean_loads(const Graph& graph, const Target& target, int width);
/// Bytes of what the moments of an element are computed from; 0: there are none, or of none the
/// counts are known, as all are filtered.
int bytes_of_moments(const Graph& graph);

}  // namespace chainfold::codegen
