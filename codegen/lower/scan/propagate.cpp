// lower_propagate: scans of segments of several tiles in three launches. These are the folds of all
// tiles, the scan of these folds, and the scan of every tile behind what comes before it. The input
// is read twice, and no block waits for another. Where tiles are few (ScanPlan::direct) the second
// launch is spared: every tile folds the states before its own itself.
//
// Source: Dakkak et al., Accelerating Reduction and Scan Using Tensor Core Units, 2019, section 5,
// whose grid-level scan has these three steps.
#include "chainfold/codegen/lower/scan/propagate.hpp"

#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/block.hpp"
#include "chainfold/codegen/lower/scan/params.hpp"
#include "chainfold/codegen/lower/scan/tiles.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

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
    if (plan.scan.direct) return;
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

  /// A block a segment: each state is replaced by the fold of those before it. A warp has a share
  /// of them, folds it, and scans it behind the shares before it.
  void lower_states() {
    Builder b(program_);
    ScanTiles tiles(b, graph_, plan_, params_);
    ScanTile& run = tiles.run();
    const ValueId count = tiles.tiles(), first = b.mul(b.block(), count);
    const Partials start = tiles.carried_in();
    const Share share = share_of_warp(b, run, count, plan_.scan.states_a_lane);
    const bool alone = plan_.scan.state_warps == 1;
    Partials before = start, folds;
    if (!alone) {
      ScanBlock block(b, program_, graph_, run);
      block.share(fold_share(b, run, first, share, run.tile().identities()));
      before = run.merge(start, block.before_warp());
      folds = run.merge(start, block.all());
    }
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      if (!alone && !run.is_scan(f)) continue;  // what comes before a tile is not needed
      Builder::Values behind =
          b.loop(share.begin, share.end, b.i64(kWarpWidth * share.a_lane),
                 run.tile().flatten({before[f]}), [&](ValueId at, const Builder::Values& carried) {
                   return scan_batch(b, run, f, first, share, at, carried);
                 });
      if (alone) folds.push_back({.fields = std::move(behind), .lifted = true});
    }
    on_first_warp(b, plan_.scan.state_warps,
                  [&] { totals_.store_one(b, run.tile(), b.block(), folds); });
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
    states.share(fold_before(b, tiles));
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
  /// The warp's share of what comes before the tile; the first share has what the launch brings,
  /// too.
  Partials fold_before(Builder& b, ScanTiles& tiles) {
    constexpr std::int64_t kStatesALane = 2;  // two loads on their way at once
    ScanTile& run = tiles.run();
    const Share share = share_of_warp(b, run, tiles.index(), kStatesALane);
    Partials start = tiles.carried_in();
    const ValueId is_first = b.splat(b.compute(Op::eq, {share.number, b.i64(0)}));
    for (std::size_t f = 0; f < start.size(); ++f)
      start[f] = run.tile().keep_where(f, std::move(start[f]), is_first);
    return fold_share(b, run, b.sub(b.block(), tiles.index()), share, start);
  }

  /// A warp's share of the states of a segment, of which a lane takes so many neighbours at once.
  /// Tiles are counted in the scans' direction, or forward if they have both; shares lie in memory
  /// as warps do.
  struct Share {
    ValueId number, begin, end;  // i64
    std::int64_t a_lane;
  };
  Share share_of_warp(Builder& b, const ScanTile& run, ValueId count, std::int64_t a_lane) {
    const int warps = program_.launches.back().warps;
    const ValueId warp = b.convert(b.warp(), DType::i64);
    const ValueId batch = b.i64(kWarpWidth * a_lane), all = b.i64(kWarpWidth * a_lane * warps);
    const ValueId each = b.mul(b.div(b.add(count, b.sub(all, b.i64(1))), all), batch);
    const ValueId number = run.reverse() ? b.sub(b.i64(warps - 1), warp) : warp;
    const ValueId begin = b.mul(number, each);
    return {number, begin, b.min(count, b.add(begin, each)), a_lane};
  }

  /// The fold of a share of the states from `first` on, behind `start`.
  Partials fold_share(Builder& b, ScanTile& run, ValueId first, const Share& share,
                      const Partials& start) {
    TileLowering& tile = run.tile();
    const ValueId own = b.mul(b.convert(b.lane(), DType::i64), b.i64(share.a_lane));
    const ValueId batch = b.i64(kWarpWidth * share.a_lane);
    const Builder::Values folded = b.loop(
        share.begin, share.end, batch, tile.flatten(start),
        [&](ValueId at, const Builder::Values& carried) {
          const ValueId left = b.min(batch, b.sub(share.end, at));
          std::vector<Partials> states;
          for (std::int64_t i = 0; i < share.a_lane; ++i) {
            // Lower lanes are merged as what is first in memory.
            const Address place =
                run.reverse() ? Address{.base = b.sub(b.add(first, b.add(at, left)), b.i64(1 + i)),
                                        .group = 1,
                                        .stride = -share.a_lane}
                              : Address{.base = b.add(b.add(first, at), b.i64(i)),
                                        .group = 1,
                                        .stride = share.a_lane};
            const ValueId mask = b.lt(b.add(own, b.i64(i)), left);
            states.push_back(states_.load(b, tile, place, mask));
          }
          const Partials next = tile.reduce_lanes(tile.merge_all(std::move(states)), 1, kWarpWidth);
          const Partials until = tile.unflatten(carried, true);
          return tile.flatten(run.reverse() ? tile.merge(next, until) : tile.merge(until, next));
        });
    return tile.unflatten(folded, true);
  }

  /// Replaces a batch of a share's states of fold f, the next one in its scan's direction, by the
  /// folds of what comes before each; `at`: the number of the batch's first state where that is the
  /// tiles' direction. `carried` is what comes before the batch; what comes before the next one.
  Builder::Values scan_batch(Builder& b, ScanTile& run, std::size_t f, ValueId first,
                             const Share& share, ValueId at, const Builder::Values& carried) {
    // States of backward scans beside forward ones are taken from the last tile on. Lane order is
    // the scan's either way, and merges alone know which side comes first in memory.
    const bool in_order = run.merges_backward(f) == run.reverse();
    const ValueId left = b.sub(share.end, at), one = b.i64(1);
    const ValueId base =
        b.add(first, in_order ? at : b.sub(b.sub(share.end, one), b.sub(at, share.begin)));
    const ValueId own = b.mul(b.convert(b.lane(), DType::i64), b.i64(share.a_lane));
    std::vector<Address> places;
    std::vector<ValueId> masks;
    std::vector<Partial> states;
    for (std::int64_t i = 0; i < share.a_lane; ++i) {
      places.push_back({.base = in_order ? b.add(base, b.i64(i)) : b.sub(base, b.i64(i)),
                        .group = 1,
                        .stride = in_order ? share.a_lane : -share.a_lane});
      masks.push_back(b.lt(b.add(own, b.i64(i)), left));
      states.push_back(states_.load(b, run.tile(), f, places.back(), masks.back()));
      if (i > 0) states.back() = run.merge(f, states[states.size() - 2], states.back());
    }
    const Partial carry{.fields = carried, .lifted = true};
    const Partial scanned = scan_states(b, run, f, states.back());
    const Partial before = run.merge(f, carry, shifted(b, run, f, scanned));
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Partial of_state = i == 0 ? before : run.merge(f, before, states[i - 1]);
      if (run.is_scan(f)) states_.store(b, run.tile(), f, places[i], of_state, masks[i]);
    }
    return run.tile().flatten({run.merge(f, carry, last(b, scanned))});
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
                              .min_blocks = plan.occupancy});
  lowering.lower_fold();
  if (!plan.scan.direct) {
    program.launches.push_back(
        {.name = "scan_states", .grid = params.segment_count, .warps = plan.scan.state_warps});
    lowering.lower_states();
  }
  program.launches.push_back({.name = "scan_tiles",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.occupancy,
                              .non_temporal = params.streams(graph, plan, target)});
  if (plan.scan.direct) {
    lowering.lower_direct_scan();
  } else {
    lowering.lower_scan();
  }
  return program;
}

}  // namespace chainfold::codegen
