// lower_rows: groups of `lanes_per_segment` lanes own whole segments; a warp handles `rows` times
// 32 / lanes_per_segment consecutive segments (RowTile) and stores their results side by side.
#include "chainfold/codegen/lower/fold/rows.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/row_tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/streams.hpp"

namespace chainfold::codegen {

namespace {

/// Interleaved streams of blocks. Where segments have loops, the loads of a batch are interleaved
/// instead.
InterleavedStreams block_streams(const Graph& graph, const Plan& plan) {
  if (plan.hints.streams == 1 || plan.has_loop()) return {};
  return {.count = plan.hints.streams,
          .least = kStreamBytes / std::max<std::int64_t>(1, tile_bytes(plan, graph)) + 1};
}

}  // namespace

Program lower_rows(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_rows";
  declare_graph(program, graph, plan, target);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const std::int64_t per_block = static_cast<std::int64_t>(plan.warps) * plan.segments_per_warp();
  program.launches.push_back(
      {.name = "fold_rows",
       .grid = ceil_div(SizeExpr::param(segments, "segments"), per_block),
       .warps = plan.warps,
       .half_vectors = plan.hints.half_vectors,
       .streams = block_streams(graph, plan),
       .non_temporal = {.from = plan.hints.non_temporal_from, .param = segments}});
  Builder b(program);
  const ValueId tile = b.compute(Op::add, {b.compute(Op::mul, {b.block(), b.i64(plan.warps)}),
                                           b.convert(b.warp(), DType::i64)});
  const ValueId first = b.mul(tile, b.i64(plan.segments_per_warp()));
  const ValueId behind = b.add(first, b.i64(plan.segments_per_warp()));
  const ValueId exist = b.param(segments);
  const ValueId whole = b.compute(Op::le, {behind, exist});
  RowTile rows(b, graph, plan);
  const RowTile::Sink store = [&](std::size_t output, ValueId offset, ValueId value, ValueId mask) {
    b.store(static_cast<int>(graph.inputs.size() + output), {b.add(first, offset)}, value, mask,
            plan.hints.non_temporal_from > 0 && mask == kNoValue);
  };
  auto body = [&](ValueId segments_that_exist) {
    return [&, segments_that_exist] {
      rows.lower_tile(first, segments_that_exist, store);
      return Builder::Values{};
    };
  };
  b.branch(whole, body(kNoValue), body(exist));
  return program;
}

}  // namespace chainfold::codegen
