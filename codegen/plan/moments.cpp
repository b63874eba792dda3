#include "chainfold/codegen/plan/moments.hpp"

#include <algorithm>
#include <cstddef>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

namespace {

/// Bytes of a lane's values that share a mean: half of the registers of AVX-512.
constexpr int kMeanBytes = 32;

}  // namespace

int bytes_of_moments(const Graph& graph) {
  int bytes = 0;
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold || node.filter != kNoNode) continue;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    if (fold.moments) bytes += size_of(fold.operands[0]);
  }
  return bytes;
}

int mean_loads(const Graph& graph, const Target& target, int width) {
  const int bytes = target.vector_lanes ? width * bytes_of_moments(graph) : 0;
  return bytes > 0 ? std::max(1, kMeanBytes / bytes) : 0;
}

}  // namespace chainfold::codegen
