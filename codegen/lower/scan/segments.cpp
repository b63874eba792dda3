// Scans in one launch without waiting. A warp takes a tile of whole segments (scan_tile), or a
// segment (scan_run); or a block takes a segment or a few (scan_block).
#include "chainfold/codegen/lower/scan/segments.hpp"

#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/scan/block.hpp"
#include "chainfold/codegen/lower/scan/params.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

/// Program and launch of one kind of block for a number of segments that is known at launch.
Program start(const Graph& graph, const Plan& plan, const Target& target,
              std::int64_t segments_per_block) {
  Program program;
  program.name = plan.strategy == Strategy::scan_block  ? "scan_block"
                 : plan.strategy == Strategy::scan_tile ? "scan_tile"
                                                        : "scan_run";
  declare_graph(program, graph, plan, target);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  program.launches.push_back(
      {.name = program.name,
       .grid = ceil_div(SizeExpr::param(segments, "segments"), segments_per_block),
       .warps = plan.warps,
       .min_blocks = plan.occupancy,
       .non_temporal = {.from = plan.hints.non_temporal_from,
                        .param = segments,
                        .factor = plan.segment,
                        .along = plan.hints.to_lines ? lines_along(graph) : -1,
                        .evict_last_from = target.evict_last_bytes,
                        .evict_last_unit = widest_output(graph)}});
  return program;
}

/// The parameter that start() declared.
ValueId segments_of(Builder& b) { return b.param(static_cast<int>(b.program().params.size()) - 1); }

/// Number of the warp among all of the launch.
ValueId warp_of_launch(Builder& b, const Plan& plan) {
  return b.add(b.mul(b.block(), b.i64(plan.warps)), b.convert(b.warp(), DType::i64));
}

/// Every `step`-th of the segments [first, behind) one after the other.
void scan_segments(Builder& b, const Graph& graph, const Plan& plan, ScanTile& scan, ValueId first,
                   ValueId behind, std::int64_t step = 1) {
  b.loop(first, behind, b.i64(step), {}, [&](ValueId segment, const Builder::Values&) {
    const ValueId size = b.i64(plan.segment), begin = b.mul(segment, size), zero = b.i64(0);
    std::vector<ValueId> folded(graph.folds.size(), kNoValue);
    if (broadcasts(graph)) folded = scan.values_of(scan.total_of_range(begin, size, zero));
    const Partials folds =
        scan.scan_range(begin, size, zero, scan.tile().identities(), size, folded);
    scan.store_folds(folds, segment, size);
    return Builder::Values{};
  });
}

/// Blocks of several segments, which begin anywhere in loads.
Program lower_scan_groups(const Graph& graph, const Plan& plan, const Target& target) {
  Program program = start(graph, plan, target, plan.scan.tile_segments);
  Builder b(program);
  ScanTile scan(b, graph, plan, plan.segment);
  const ValueId exist = segments_of(b), first = b.mul(b.block(), b.i64(plan.scan.tile_segments));
  const ValueId behind = b.add(first, b.i64(plan.scan.tile_segments)), size = b.i64(plan.segment);
  const ValueId slot = b.mul(b.warp(), b.i32(static_cast<std::int32_t>(scan.elements())));
  const ValueId mine = b.convert(slot, DType::i64), begin = b.add(b.mul(first, size), mine);
  ScanBlock block(b, program, graph, scan);
  const auto scan_rows = [&](const std::vector<Loaded>& rows, ValueId count) {
    block.share(scan.total_of_open_segment(rows));
    scan.scan_segments(rows, begin, count, first, scan.carry_of(block.before_warp()));
    return Builder::Values{};
  };
  b.branch(
      b.compute(Op::le, {behind, exist}),
      [&] {
        const std::int64_t elements = plan.scan.tile_segments * plan.segment;
        const bool full = elements == scan.elements() * plan.warps;
        const ValueId count = full ? kNoValue : b.sub(b.i64(elements), mine);
        scan.begin_at(slot);
        return scan_rows(scan.load(begin, count, mine), count);
      },
      [&] {  // of the last block some segments are missing
        if (scans_both_ways(graph)) {
          const ValueId count = b.sub(b.mul(b.sub(exist, first), size), mine);
          scan.begin_at(slot);
          return scan_rows(scan.load_whole(begin, count, mine), count);
        }
        const ValueId own = b.add(first, b.convert(b.warp(), DType::i64));
        scan_segments(b, graph, plan, scan, own, b.min(behind, exist), plan.warps);
        return Builder::Values{};
      });
  return program;
}

}  // namespace

Program lower_scan_tile(const Graph& graph, const Plan& plan, const Target& target) {
  Program program = start(graph, plan, target, plan.scan.tile_segments * plan.warps);
  Builder b(program);
  ScanTile scan(b, graph, plan, plan.segment);
  const ValueId exist = segments_of(b), per_tile = b.i64(plan.scan.tile_segments);
  const ValueId first = b.mul(warp_of_launch(b, plan), per_tile);
  const ValueId behind = b.add(first, per_tile);
  const ValueId size = b.i64(plan.segment), begin = b.mul(first, size);
  const auto scan_rows = [&](const std::vector<Loaded>& rows, ValueId count) {
    scan.scan_segments(rows, begin, count, first, scan.no_carry());
    return Builder::Values{};
  };
  const bool both_ways = scans_both_ways(graph);
  if (both_ways && plan.segment % plan.load_width == 0) {  // masks serve the last tile, too
    const ValueId count = b.mul(b.min(per_tile, b.sub(exist, first)), size);
    scan_rows(scan.load(begin, count, b.i64(0)), count);
    return program;
  }
  const auto one_by_one = [&] {
    scan_segments(b, graph, plan, scan, first, b.min(behind, exist));
    return Builder::Values{};
  };
  const auto load_all = [&](const auto& body) {
    const std::int64_t elements = plan.scan.tile_segments * plan.segment;
    const ValueId count = elements == scan.elements() ? kNoValue : b.i64(elements);
    return body(scan.load(begin, count, b.i64(0)), count);
  };
  const ValueId full = b.compute(Op::le, {behind, exist});
  if (scan.leaves_segments()) {
    const auto served = [&](const std::vector<Loaded>& rows, ValueId count) {
      return Builder::Values{scan.scan_quick_segments(rows, begin, count, first)};
    };
    const auto not_served = [&]() -> Builder::Values { return {b.constant(DType::boolean, 0)}; };
    const ValueId done = b.branch(full, [&] { return load_all(served); }, not_served)[0];
    b.branch(b.all(done), [] { return Builder::Values{}; }, one_by_one);
    return program;
  }
  b.branch(
      full, [&] { return load_all(scan_rows); },
      [&] {  // of the last tile some segments are missing
        if (!both_ways) return one_by_one();
        const ValueId count = b.mul(b.sub(exist, first), size);
        return scan_rows(scan.load_whole(begin, count, b.i64(0)), count);
      });
  return program;
}

namespace {

/// The whole input by one warp, which waits for none.
Program lower_scan_all(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_run";
  declare_graph(program, graph, plan, target);
  const TileParams params = declare_tiles(program, graph, plan);
  program.launches.push_back({.name = program.name,
                              .grid = params.all(),
                              .warps = plan.warps,
                              .non_temporal = params.streams(graph, plan, target)});
  Builder b(program);
  ScanTiles tiles(b, graph, plan, params);
  ScanTile& run = tiles.run();
  const ValueId extent = tiles.extent(), zero = b.i64(0);
  // Behind the identity: it may be a state of -0.0, which no merged one is (drop_zeros).
  const Partials before = run.merge(run.tile().identities(), tiles.carried_in());
  std::vector<ValueId> folded(graph.folds.size(), kNoValue);
  if (broadcasts(graph))
    folded = run.values_of(run.merge(before, run.total_of_range(zero, extent, zero)));
  const Partials folds = run.scan_range(zero, extent, zero, before, extent, folded);
  run.store_folds(folds, b.block(), extent);
  tiles.carry_out(folds);
  return program;
}

}  // namespace

Program lower_scan_run(const Graph& graph, const Plan& plan, const Target& target) {
  if (plan.is_whole()) return lower_scan_all(graph, plan, target);
  Program program = start(graph, plan, target, plan.scan.tile_segments * plan.warps);
  Builder b(program);
  ScanTile scan(b, graph, plan, 0);
  const ValueId first = b.mul(warp_of_launch(b, plan), b.i64(plan.scan.tile_segments));
  const ValueId behind = b.min(b.add(first, b.i64(plan.scan.tile_segments)), segments_of(b));
  auto one_by_one = [&] {
    scan_segments(b, graph, plan, scan, first, behind);
    return Builder::Values{};
  };
  if (!has_seams(plan)) {
    one_by_one();
    return program;
  }
  b.branch(
      b.streams(),
      [&] {
        scan.scan_on_lines(first, behind);
        return Builder::Values{};
      },
      one_by_one);
  return program;
}

Program lower_scan_block(const Graph& graph, const Plan& plan, const Target& target) {
  if (plan.scan.tile_segments > 0) return lower_scan_groups(graph, plan, target);
  Program program = start(graph, plan, target, 1);
  Builder b(program);
  ScanTile scan(b, graph, plan, 0);
  ScanBlock block(b, program, graph, scan);
  const ValueId mine = b.mul(b.convert(b.warp(), DType::i64), b.i64(scan.elements()));
  const ValueId begin = b.add(b.mul(b.block(), b.i64(plan.segment)), mine);
  const std::int64_t tile = scan.elements() * plan.warps;
  const ValueId count = tile == plan.segment ? kNoValue : b.sub(b.i64(plan.segment), mine);
  const std::vector<Loaded> rows = scan.load(begin, count, mine);
  block.share(scan.total(rows));
  const ValueId extent = b.i64(plan.segment);
  const Partials folds = block.all();
  scan.scan(rows, begin, scan.carry_of(block.before_warp()), extent, scan.values_of(folds));
  on_first_warp(b, plan.warps, [&] { scan.store_folds(folds, b.block(), extent); });
  return program;
}

}  // namespace chainfold::codegen
