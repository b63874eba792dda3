// lower_look_back: scans of segments of several tiles, or of the whole input, in one launch that
// reads its input once. A block takes one tile, which stays in registers until what comes before it
// is known (tile_tree.hpp). Where registers are too few for the bytes that a memory wants on its
// way, it stays in shared memory, too.
#include "chainfold/codegen/lower/scan/look_back.hpp"

#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/block.hpp"
#include "chainfold/codegen/lower/scan/params.hpp"
#include "chainfold/codegen/lower/scan/ring.hpp"
#include "chainfold/codegen/lower/scan/tile_tree.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

Program lower_look_back(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_look_back";
  declare_graph(program, graph, plan, target);
  const TileParams params = declare_tiles(program, graph, plan);
  TileTree tree(program, graph, plan, params);
  program.launches.reserve(2);
  tree.lower_clear(target);
  program.launches.push_back({.name = "scan_look_back",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.occupancy,
                              .bulk_copies = plan.scan.staged_rows > 0 && target.bulk_copies,
                              .non_temporal = params.streams(graph, plan, target)});
  Builder b(program);
  ScanTiles tiles(b, graph, plan, params);
  ScanTile& run = tiles.run();
  std::optional<ScanRing> ring;
  if (plan.scan.staged_rows > 0) tiles.read_through(ring.emplace(b, program, graph, plan, run));
  const ValueId ticket = tree.ticket(b);
  tiles.place(ticket);
  const Partials own = tiles.total();
  ScanBlock block(b, program, graph, run);
  block.share(own);
  const Partials in_block = block.before_warp();
  TileTree::Refold refold;
  std::optional<ScanTiles> others;  // that other threads have taken
  if (!plan.scan.in_registers)
    refold = [&](ValueId late) { return others.emplace(b, graph, plan, params).total_of(late); };
  const Partials looked = tree.before(b, tiles, ticket, [&] { return block.all(); }, true, refold);
  const Partials before = run.merge(tiles.carried_in(), looked);
  tiles.scan(run.merge(block.reaching_warp(before), in_block),
             std::vector<ValueId>(graph.folds.size(), kNoValue));
  tiles.store_folds([&] { return run.merge(before, block.all()); });
  return program;
}

}  // namespace chainfold::codegen
