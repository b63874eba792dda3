// Parameters and buffers of programs over tiles.
#include "chainfold/codegen/lower/scan/params.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

SizeExpr TileParams::all() const { return segment_count * tiles; }

NonTemporalStores TileParams::streams(const Graph& graph, const Plan& plan,
                                      const Target& target) const {
  NonTemporalStores streams{.from = plan.hints.non_temporal_from,
                            .param = elements,
                            .along = plan.hints.to_lines ? lines_along(graph) : -1,
                            .evict_last_from = target.evict_last_bytes,
                            .evict_last_unit = widest_output(graph)};
  // Few elements, which the second launch finds in the cache.
  if (plan.scan.direct) streams.evict_last_from = 0;
  if (plan.segment > 0) {
    streams.param = segments;
    streams.factor = plan.segment;
  }
  return streams;
}

TileParams declare_tiles(Program& program, const Graph& graph, const Plan& plan) {
  TileParams params;
  params.elements = add_param(program, "elements", DType::i64, ParamRole::elements);
  params.segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  params.segment_count = SizeExpr::param(params.segments, "segments");
  if (plan.scan.heads) {
    params.tiles = ceil_div(params.segment_count * plan.segment, plan.scan.tile);
    params.segment_count = 1;
    return params;
  }
  if (plan.segment > 0) {
    params.tiles = SizeExpr(tiles_of_segment(plan));
    return params;
  }
  // No elements take a tile, too: there are outputs of segments, and carries.
  params.tiles =
      plan.scan.tile == 0  // a warp's
          ? SizeExpr(1)
          : max(ceil_div(SizeExpr::param(params.elements, "elements"), plan.scan.tile), 1);
  params.has_carry_in = add_param(program, "has_carry_in", DType::i64, ParamRole::has_carry_in);
  params.has_carry_out = add_param(program, "has_carry_out", DType::i64, ParamRole::has_carry_out);
  auto declare = [&](const char* name, BufferRole role) {
    const auto first = static_cast<int>(program.buffers.size());
    int field = 0;
    for (const Fold& fold : graph.folds) {
      for (const DType type : fold.state) {
        program.buffers.push_back(
            {fmt::format("{}_{}", name, field), type, role, field, size_of(type), 0});
        ++field;
      }
    }
    return first;
  };
  params.carry_in = declare("carry_in", BufferRole::carry_in);
  params.carry_out = declare("carry_out", BufferRole::carry_out);
  return params;
}

}  // namespace chainfold::codegen
