// lower_propagate: scans of segments of several tiles in three launches: the folds of all tiles,
// the scan of these folds, and the scan of every tile behind what comes before it. Its input is
// read twice, and no block waits for another. Where tiles are few (Plan::direct) the second launch
// is spared: every tile folds the states before its own itself.
//
// Source: Dakkak et al., Accelerating Reduction and Scan Using Tensor Core Units, 2019, section 5,
// whose grid-level scan has these three steps.
#include <utility>

#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_scan_tiles.hpp"

namespace chainfold::codegen {

namespace {

class Propagate {
 public:
  Propagate(Program& program, const Graph& graph, const Plan& plan)
      : program_(program),
        graph_(graph),
        plan_(plan),
        params_(declare_tiles(program, graph, plan)) {
    const auto states = static_cast<int>(program.buffers.size());
    declare_states(program, graph, params_.all(), 1);
    states_ = {StateArrays::Memory::global, states};
    if (plan.direct) return;
    // Of whole segments: as many arrays again.
    const auto totals = static_cast<int>(program.buffers.size());
    for (int i = states; i < totals; ++i) {
      Buffer total = program.buffers[static_cast<std::size_t>(i)];
      total.name = "total_" + std::to_string(i - states);
      total.index += totals - states;
      total.elements = params_.segment_count;
      program.buffers.push_back(std::move(total));
    }
    totals_ = {StateArrays::Memory::global, totals};
  }
  [[nodiscard]] const TileParams& params() const { return params_; }

  void lower_fold() {
    Builder b(program_);
    ScanTiles tiles(b, graph_, plan_, params_);
    tiles.place(b.block());
    const Partials own = tiles.total();
    ScanBlock block(b, program_, graph_, tiles.run());
    block.share(own);
    on_first_warp(b, plan_.warps,
                  [&] { states_.store_one(b, tiles.run().tile(), b.block(), block.all()); });
  }

  /// A warp a segment: 32 states at once, each replaced by the fold of those before it.
  void lower_states() {
    Builder b(program_);
    ScanTiles tiles(b, graph_, plan_, params_);
    ScanTile& run = tiles.run();
    const ValueId count = tiles.tiles(), first = b.mul(b.block(), count);
    const Partials start = tiles.carried_in();
    // Tiles are counted in the scans' direction, or forward if they have both: then states of
    // backward scans are taken from the last tile on. Lane order is the scan's either way, and
    // merges alone know which side comes first in memory.
    auto in_order = [&](std::size_t f) { return run.merges_backward(f) == run.reverse(); };
    const Builder::Values folded = b.loop(
        b.i64(0), count, b.i64(kWarpWidth), run.tile().flatten(start),
        [&](ValueId at, const Builder::Values& carried) {
          const Address upward{.base = b.add(first, at)};
          const ValueId mask = b.lt(b.convert(b.lane(), DType::i64), b.sub(count, at));
          Partials carry = run.tile().unflatten(carried, true);
          for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
            const Address place =
                in_order(f) ? upward
                            : Address{.base = b.sub(b.add(first, b.sub(count, b.i64(1))), at),
                                      .group = 1,
                                      .stride = -1};
            const Partial scanned =
                scan_states(b, run, f, states_.load(b, run.tile(), f, place, mask));
            const Partial before = run.merge(f, carry[f], shifted(b, run, f, scanned));
            carry[f] = run.merge(f, carry[f], last(b, scanned));
            states_.store(b, run.tile(), f, place, before, mask);
          }
          return run.tile().flatten(carry);
        });
    const Partials folds = run.tile().unflatten(folded, true);
    totals_.store_one(b, run.tile(), b.block(), folds);
  }

  /// Behind the fold of the states before the tile, which each block computes.
  void lower_direct_scan() {
    Builder b(program_);
    ScanTiles tiles(b, graph_, plan_, params_);
    ScanTile& run = tiles.run();
    tiles.place(b.block());
    // What is the tile's own comes first: the launch before ends meanwhile, whose states are waited
    // for.
    ScanBlock block(b, program_, graph_, run);
    block.share(tiles.total());
    const Partials in_block = block.before_warp();
    ScanBlock states(b, program_, graph_, run, "before");
    states.share(share_of_states(b, tiles));
    const Partials before = states.all();
    tiles.scan(run.merge(before, in_block), std::vector<ValueId>(graph_.folds.size(), kNoValue));
    tiles.store_folds([&] { return run.merge(before, block.all()); });
  }

  void lower_scan() {
    Builder b(program_);
    ScanTiles tiles(b, graph_, plan_, params_);
    tiles.place(b.block());
    const Partials own = tiles.total();
    ScanBlock block(b, program_, graph_, tiles.run());
    block.share(own);
    const Partials in_block = block.before_warp();
    const Partials before = states_.load_one(b, tiles.run().tile(), b.block());
    const Partials carry = tiles.run().merge(before, in_block);
    const Partials folds = totals_.load_one(b, tiles.run().tile(), tiles.segment());
    tiles.scan(carry, tiles.run().values_of(folds));
    tiles.store_folds([&] { return folds; });
  }

 private:
  /// The warp's share of what comes before the tile: a run of the states, of which a lane takes
  /// neighbours; the first share has what the launch brings, too. Shares lie in memory as warps do.
  Partials share_of_states(Builder& b, ScanTiles& tiles) {
    ScanTile& run = tiles.run();
    TileLowering& tile = run.tile();
    constexpr std::int64_t kStatesALane = 2;  // two loads on their way at once
    const ValueId count = tiles.index(), warp = b.convert(b.warp(), DType::i64);
    const ValueId first = b.sub(b.block(), count), batch = b.i64(kWarpWidth * kStatesALane),
                  all = b.i64(kWarpWidth * kStatesALane * plan_.warps);
    const ValueId each = b.mul(b.div(b.add(count, b.sub(all, b.i64(1))), all), batch);
    const ValueId share = run.reverse() ? b.sub(b.i64(plan_.warps - 1), warp) : warp;
    const ValueId begin = b.mul(share, each), end = b.min(count, b.add(begin, each));
    Partials start = tiles.carried_in();
    const ValueId is_first = b.splat(b.compute(Op::eq, {share, b.i64(0)}));
    for (std::size_t f = 0; f < start.size(); ++f)
      start[f] = tile.keep_where(f, std::move(start[f]), is_first);
    const ValueId own = b.mul(b.convert(b.lane(), DType::i64), b.i64(kStatesALane));
    const Builder::Values folded = b.loop(
        begin, end, batch, tile.flatten(start), [&](ValueId at, const Builder::Values& carried) {
          const ValueId left = b.min(batch, b.sub(end, at));
          std::vector<Partials> states;
          for (std::int64_t i = 0; i < kStatesALane; ++i) {
            // States follow the scan's direction; lower lanes are merged as what is first in
            // memory.
            const Address place =
                run.reverse() ? Address{.base = b.sub(b.add(first, b.add(at, left)), b.i64(1 + i)),
                                        .group = 1,
                                        .stride = -kStatesALane}
                              : Address{.base = b.add(b.add(first, at), b.i64(i)),
                                        .group = 1,
                                        .stride = kStatesALane};
            const ValueId mask = b.lt(b.add(own, b.i64(i)), left);
            states.push_back(states_.load(b, tile, place, mask));
          }
          const Partials next = tile.reduce_lanes(tile.merge_all(std::move(states)), 1, kWarpWidth);
          return tile.flatten(run.merge(tile.unflatten(carried, true), next));
        });
    return tile.unflatten(folded, true);
  }
  /// Lane l's state merged with those of the lanes below it.
  Partial scan_states(Builder& b, ScanTile& run, std::size_t f, Partial state) {
    for (int distance = 1; distance < kWarpWidth; distance *= 2) {
      Partial other = state;
      for (ValueId& field : other.fields) field = b.shuffle_up(field, distance);
      const ValueId reaches = b.compute(Op::ge, {b.lane(), b.i32(distance)});
      const Partial merged = run.merge(f, other, state);
      for (std::size_t i = 0; i < state.fields.size(); ++i)
        state.fields[i] = b.select(reaches, merged.fields[i], state.fields[i]);
    }
    return state;
  }
  static Partial shifted(Builder& b, ScanTile& run, std::size_t f, Partial state) {
    for (ValueId& field : state.fields) field = b.shuffle_up(field, 1);
    return run.tile().keep_where(f, std::move(state), b.compute(Op::ge, {b.lane(), b.i32(1)}));
  }
  static Partial last(Builder& b, Partial state) {
    for (ValueId& field : state.fields)
      field = b.permute(field, std::vector<std::uint8_t>(kWarpWidth, kWarpWidth - 1));
    return state;
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  TileParams params_;
  StateArrays states_, totals_;
};

}  // namespace

Program lower_propagate(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_propagate";
  declare_graph(program, graph, plan, target);
  Propagate lowering(program, graph, plan);
  const TileParams params = lowering.params();
  program.launches.reserve(3);
  program.launches.push_back({.name = "fold_tiles",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.resident});
  lowering.lower_fold();
  if (!plan.direct) {
    program.launches.push_back({.name = "scan_states", .grid = params.segment_count, .warps = 1});
    lowering.lower_states();
  }
  program.launches.push_back({.name = "scan_tiles",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.resident,
                              .streams = params.streams(graph, plan, target)});
  if (plan.direct) {
    lowering.lower_direct_scan();
  } else {
    lowering.lower_scan();
  }
  return program;
}

}  // namespace chainfold::codegen
