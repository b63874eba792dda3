#include "chainfold/codegen/lower/fold/path_bounds.hpp"

#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

std::unique_ptr<PathBounds> declare_path_bounds(Program& program, const Graph& graph,
                                                const Plan& plan, int elements) {
  return has_heads(graph) ? declare_heads(program, graph, elements)
                          : declare_offsets(program, graph, plan, elements);
}

}  // namespace chainfold::codegen
