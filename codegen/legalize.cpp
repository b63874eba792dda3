#include "chainfold/codegen/legalize.hpp"

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/minima.hpp"
#include "chainfold/codegen/graph/wide_scans.hpp"

namespace chainfold::codegen {

Graph legalize(const Graph& graph, const Target& target) {
  if (target.lane_words) return with_wide_scans(graph);
  return target.integer_order ? with_integer_minima(graph) : graph;
}

}  // namespace chainfold::codegen
