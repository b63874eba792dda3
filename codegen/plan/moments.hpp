// How many loads of moments share a mean.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Plan::mean_loads of loads of so many elements. A mean that lanes share costs a CPU exchanges and
/// additions for every row. Means of their own make merges of two rows longer
/// (docs/decisions/0022-moments.md). The number is 0 on GPUs, which wait for memory either way, and
/// where all moments are filtered.
[[nodiscard]] int mean_loads(const Graph& graph, const Target& target, int width);
/// Bytes of what the moments of an element are computed from, but for filtered ones, whose counts
/// are not known. The number is 0 where no others are left.
int bytes_of_moments(const Graph& graph);

}  // namespace chainfold::codegen
