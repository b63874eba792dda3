// lower_propagate: scans of segments of several tiles in three launches: the folds of all tiles,
// the scan of these folds, and the scan of every tile behind what comes before it. Its input is
// read twice, and no block waits for another.
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
    states_ = static_cast<int>(program.buffers.size());
    declare_states(program, graph, params_.all(), 1);
    // Of whole segments: as many arrays again.
    totals_ = static_cast<int>(program.buffers.size());
    for (int i = states_; i < totals_; ++i) {
      Buffer total = program.buffers[static_cast<std::size_t>(i)];
      total.name = "total_" + std::to_string(i - states_);
      total.index += totals_ - states_;
      total.elements = params_.segment_count;
      program.buffers.push_back(std::move(total));
    }
  }
  [[nodiscard]] const TileParams& params() const { return params_; }

  void lower_fold() {
    Builder b(program_);
    ScanTiles tiles(b, program_, graph_, plan_, params_);
    tiles.place(b.block());
    const Partials own = tiles.total();
    ScanBlock block(b, program_, graph_, tiles.run());
    block.share(own);
    on_first_warp(b, plan_.warps, [&] {
      store_states(b, tiles.run(), states_, {.base = b.block()}, block.all(),
                   b.compute(Op::eq, {b.lane(), b.i32(0)}));
    });
  }

  /// A warp a segment: 32 states at once, each replaced by the fold of those before it.
  void lower_states() {
    Builder b(program_);
    ScanTiles tiles(b, program_, graph_, plan_, params_);
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
          int buffer = states_;
          for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
            const Address place =
                in_order(f) ? upward
                            : Address{.base = b.sub(b.add(first, b.sub(count, b.i64(1))), at),
                                      .group = 1,
                                      .stride = -1};
            Partial state = run.tile().identity(f);
            int field_buffer = buffer;
            for (ValueId& field : state.fields)
              field = b.select(mask, b.load(field_buffer++, place, 1, mask), field);
            const Partial scanned = scan_states(b, run, f, state);
            const Partial before = merge(run, f, carry[f], shifted(b, run, f, scanned));
            carry[f] = merge(run, f, carry[f], last(b, scanned));
            for (const ValueId field : before.fields) b.store(buffer++, place, field, mask);
          }
          return run.tile().flatten(carry);
        });
    const Partials folds = run.tile().unflatten(folded, true);
    store_states(b, run, totals_, {b.block()}, folds, b.compute(Op::eq, {b.lane(), b.i32(0)}));
  }

  void lower_scan() {
    Builder b(program_);
    ScanTiles tiles(b, program_, graph_, plan_, params_);
    tiles.place(b.block());
    const Partials own = tiles.total();
    ScanBlock block(b, program_, graph_, tiles.run());
    block.share(own);
    Partials carry = block.before_warp();
    const Partials before = load_states(b, tiles.run(), states_, b.block());
    for (std::size_t f = 0; f < graph_.folds.size(); ++f)
      carry[f] = merge(tiles.run(), f, before[f], carry[f]);
    const Partials folds = load_states(b, tiles.run(), totals_, tiles.segment());
    tiles.scan(carry, tiles.run().values_of(folds));
    tiles.store_folds([&] { return folds; });
  }

 private:
  Partial merge(ScanTile& run, std::size_t f, const Partial& earlier, const Partial& later) {
    return run.row().merge(f, earlier, later, run.merges_backward(f));
  }
  /// Lane l's state merged with those of the lanes below it.
  Partial scan_states(Builder& b, ScanTile& run, std::size_t f, Partial state) {
    for (int distance = 1; distance < kWarpWidth; distance *= 2) {
      Partial other = state;
      for (ValueId& field : other.fields) field = b.shuffle_up(field, distance);
      const ValueId reaches = b.compute(Op::ge, {b.lane(), b.i32(distance)});
      const Partial merged = merge(run, f, other, state);
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
  /// Every lane receives state `at` of the arrays from `buffer` on.
  Partials load_states(Builder& b, ScanTile& run, int buffer, ValueId at) {
    Partials states;
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      Partial state = run.tile().identity(f);
      for (ValueId& field : state.fields)
        field = b.load(buffer++, {.base = at, .group = 1, .stride = 0});
      states.push_back(std::move(state));
    }
    return states;
  }
  void store_states(Builder& b, ScanTile& run, int buffer, const Address& at,
                    const Partials& states, ValueId mask) {
    for (const ValueId field : run.tile().flatten(states)) b.store(buffer++, at, field, mask);
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  TileParams params_;
  int states_ = 0, totals_ = 0;  // the first buffers
};

}  // namespace

Program lower_propagate(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_propagate";
  program.in_place = true;
  declare_graph(program, graph, plan);
  Propagate lowering(program, graph, plan);
  const TileParams params = lowering.params();
  program.launches.reserve(3);
  program.launches.push_back({.name = "fold_tiles",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.resident});
  lowering.lower_fold();
  program.launches.push_back({.name = "scan_states",
                              .grid = params.segment_count,
                              .warps = 1,
                              .overlaps = target.overlaps});
  lowering.lower_states();
  program.launches.push_back({.name = "scan_tiles",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.resident,
                              .overlaps = target.overlaps,
                              .streams = params.streams(plan)});
  lowering.lower_scan();
  return program;
}

}  // namespace chainfold::codegen
