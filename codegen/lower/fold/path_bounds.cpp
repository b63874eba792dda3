#include "chainfold/codegen/lower/fold/path_bounds.hpp"

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

void PathRows::tell(Builder& b, const StatusParams& status, int warps) {
  const ValueId first_block = b.compute(Op::eq, {b.block(), b.i64(0)});
  b.branch(
      b.both(first_block, b.compute(Op::ne, {b.param(status.has_status), b.i64(0)})),
      [&] {
        on_first_warp(b, warps, [&] { write_status(b, status.status); });
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
}

StatusParams declare_status(Program& program) {
  program.buffers.push_back({"status", DType::i64, BufferRole::status, 0, size_of(DType::i64), 0});
  return {.status = static_cast<int>(program.buffers.size()) - 1,
          .has_status = add_param(program, "has_status", DType::i64, ParamRole::has_status)};
}

std::unique_ptr<PathBounds> declare_path_bounds(Program& program, const Graph& graph,
                                                const Plan& plan, int elements) {
  return has_heads(graph) ? declare_heads(program, graph, elements)
                          : declare_offsets(program, graph, plan, elements);
}

}  // namespace chainfold::codegen
