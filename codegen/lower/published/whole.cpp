// The whole input by blocks that stay. Each warp takes every so many units of squares, its chains'
// sums go into a state, and warps meet in shared memory. How blocks meet differs. A second launch
// merges their states (grid256n, [D] 4.3). Or within one launch the last block to finish merges
// them, or all add to the output atomically. These are single_pass ([N] 5.2), and split ([N] 5.3),
// whose other warps add up their share of the input by lanes. A first, tiny launch sets to zero
// what blocks add to.
#include "chainfold/codegen/lower/published/whole.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kSquare = SquareLowering::kSquare;
/// States that a lane loads before it merges them.
constexpr int kStateLoads = 4;

class WholeLowering {
 public:
  WholeLowering(Program& program, const Graph& graph, const Plan& plan, int elements)
      : program_(program),
        graph_(graph),
        plan_(plan),
        elements_(elements),
        unit_(std::int64_t{kSquare} * plan.depth) {
    const auto first = static_cast<int>(graph.inputs.size() + graph.outputs.size());
    int scratch = 0;
    auto declare = [&](std::string name, DType type, std::int64_t count) {
      program.buffers.push_back(
          {std::move(name), type, BufferRole::scratch, scratch, size_of(type), count});
      ++scratch;
    };
    if (plan.published.atomics) return;
    for (std::size_t i = 0; i < graph.folds[0].state.size(); ++i)
      declare("state_" + std::to_string(i), graph.folds[0].state[i], plan.blocks);
    states_ = first;
    counter_ = first + scratch;
    if (plan.strategy != Strategy::grid256n) declare("finished", DType::u32, 1);
  }

  void lower() {
    const SizeExpr n = SizeExpr::param(elements_, "elements");
    const SizeExpr grid = max(1, min(ceil_div(n, unit_ * plan_.warps), plan_.blocks));
    const bool two = plan_.strategy == Strategy::grid256n;
    program_.launches.reserve(2);
    if (!two) {
      program_.launches.push_back({.name = "start", .grid = 1, .warps = 1});
      lower_start();
    }
    program_.launches.push_back({.name = kernel_name(plan_), .grid = grid, .warps = plan_.warps});
    lower_fold();
    if (two) {
      program_.launches.push_back({.name = "merge_blocks", .grid = 1, .warps = plan_.warps});
      lower_merge();
    }
  }

 private:
  static ValueId first_lane(Builder& b) { return b.compute(Op::eq, {b.lane(), b.i32(0)}); }
  int output() const { return static_cast<int>(graph_.inputs.size()); }

  /// Blocks of the main launch: the same as its grid.
  ValueId blocks(Builder& b) {
    const std::int64_t each = unit_ * plan_.warps;
    const ValueId up = b.compute(Op::add, {b.param(elements_), b.i64(each - 1)});
    const ValueId needed = b.div(up, b.i64(each));
    return b.compute(Op::max, {b.i64(1), b.min(needed, b.i64(plan_.blocks))});
  }

  void lower_start() {
    Builder b(program_);
    const int buffer = plan_.published.atomics ? output() : counter_;
    const DType type = program_.buffers[static_cast<std::size_t>(buffer)].type;
    const ValueId place = b.i64(0), zero = b.constant(type, 0);
    b.store(buffer, {place}, zero, first_lane(b));
  }

  void lower_fold() {
    Builder b(program_);
    SquareLowering squares(b, graph_, plan_);
    TileLowering& tile = squares.tile();
    Partials sum = plan_.strategy == Strategy::split ? split(b, squares) : tensor_share(b, squares);
    sum = reduce_block(b, program_, tile, std::move(sum));
    on_first_warp(b, program_.launches.back().warps, [&] { meet(b, tile, sum); });
  }

  /// All warps' units on tensor cores, the ragged last one included.
  Partials tensor_share(Builder& b, SquareLowering& squares) {
    TileLowering& tile = squares.tile();
    const ValueId n = b.param(elements_);
    const ValueId full = b.div(n, b.i64(unit_));
    const ValueId all = b.compute(Op::mul, {blocks(b), b.i64(plan_.warps)});
    const ValueId my = warp_of_grid(b, plan_.warps);
    Builder::Values state = tensor_units(b, squares, my, full, all);
    const ValueId rest = b.lt(b.mul(full, b.i64(unit_)), n);
    const ValueId mine = b.compute(Op::eq, {b.rem(full, all), my});
    state = b.branch(
        b.both(rest, mine),
        [&] {
          std::vector<SquareData> data;
          for (int k = 0; k < plan_.depth; ++k)
            data.push_back(squares.load_ragged(0, place(b, full, k), n));
          return add_chains(squares, data, state);
        },
        [&] { return state; });
    return squares.across_quads(tile.unflatten(state));
  }

  /// Units my, my + all, ... below `behind`: the state of their sums.
  Builder::Values tensor_units(Builder& b, SquareLowering& squares, ValueId my, ValueId behind,
                               ValueId all) {
    TileLowering& tile = squares.tile();
    return b.loop(my, behind, all, tile.flatten({tile.identity(0)}),
                  [&](ValueId unit, const Builder::Values& carried) {
                    std::vector<SquareData> data;
                    for (int k = 0; k < plan_.depth; ++k)
                      data.push_back(squares.load_run(0, place(b, unit, k), plan_.load_width));
                    return add_chains(squares, data, carried);
                  });
  }

  Builder::Values add_chains(SquareLowering& squares, const std::vector<SquareData>& data,
                             const Builder::Values& state) {
    TileLowering& tile = squares.tile();
    const auto links = static_cast<std::size_t>(plan_.published.chain);
    Partials sum = tile.unflatten(state);
    for (std::size_t i = 0; i < data.size(); i += links)
      sum = tile.merge(sum, squares.total(squares.chain(data, i, links)));
    return tile.flatten(sum);
  }

  /// The first warps of a block take the first part of the input on tensor cores, the others the
  /// rest by lanes.
  Partials split(Builder& b, SquareLowering& squares) {
    TileLowering& tile = squares.tile();
    const int tensor = tensor_warps(plan_), lanes = plan_.warps - tensor;
    const ValueId n = b.param(elements_);
    const ValueId full = b.div(n, b.i64(unit_));
    const ValueId border =
        b.compute(Op::div, {b.mul(full, b.i64(plan_.published.fraction)), b.i64(100)});
    const ValueId grid = blocks(b);
    const Builder::Values state = b.branch(
        b.compute(Op::lt, {b.warp(), b.i32(tensor)}),
        [&] {
          const ValueId my = warp_of_grid(b, tensor);
          const Builder::Values sum =
              tensor_units(b, squares, my, border, b.mul(grid, b.i64(tensor)));
          return tile.flatten(squares.across_quads(tile.unflatten(sum)));
        },
        [&] { return lane_share(b, squares, full, border, grid, tensor, lanes); });
    return tile.unflatten(state);
  }

  Builder::Values lane_share(Builder& b, SquareLowering& squares, ValueId full, ValueId border,
                             ValueId grid, int tensor, int lanes) {
    TileLowering& tile = squares.tile();
    const ValueId n = b.param(elements_);
    const ValueId my = warp_of_grid(b, lanes, tensor);
    const ValueId all = b.mul(grid, b.i64(lanes));
    auto add = [&](const std::vector<SquareData>& data, const Builder::Values& carried) {
      Partials sum = tile.unflatten(carried);
      for (const SquareData& square : data) sum = tile.merge(sum, lane_sum(b, square));
      return tile.flatten(sum);
    };
    const ValueId first = b.add(border, my);
    Builder::Values state =
        b.loop(first, full, all, tile.flatten({tile.identity(0)}),
               [&](ValueId unit, const Builder::Values& carried) {
                 std::vector<SquareData> data;
                 for (int k = 0; k < plan_.depth; ++k)
                   data.push_back(squares.load_run(0, place(b, unit, k), plan_.load_width));
                 return add(data, carried);
               });
    const ValueId rest = b.lt(b.mul(full, b.i64(unit_)), n);
    state = b.branch(
        b.both(rest, b.compute(Op::eq, {my, b.i64(0)})),
        [&] {
          std::vector<SquareData> data;
          for (int k = 0; k < plan_.depth; ++k)
            data.push_back(squares.load_ragged(0, place(b, full, k), n));
          return add(data, state);
        },
        [&] { return state; });
    return tile.flatten(tile.reduce_lanes(tile.unflatten(state), 1, kWarpWidth));
  }

  /// The eight elements that a lane holds, in halves.
  Partials lane_sum(Builder& b, const SquareData& square) {
    const DType type = graph_.folds[0].operands[0];
    ValueId sum = b.compute(Op::add, {b.convert(square.left, type), b.convert(square.right, type)});
    for (int width = b.type(sum).width / 2; width > 0; width /= 2)
      sum = b.compute(Op::add, {b.extract(sum, 0, width), b.extract(sum, width, width)});
    return {Partial{.fields = {sum}}};
  }

  /// The block's state, in the first warp's lanes, goes where all blocks' meet.
  void meet(Builder& b, TileLowering& tile, Partials sum) {
    const ValueId none = b.i64(0), lane_0 = first_lane(b);
    if (plan_.published.atomics) {
      const ValueId value = tile.collapse(std::move(sum))[0].fields[0];
      b.atomic_add(output(), {none}, value, lane_0);
      return;
    }
    const std::vector<ValueId> fields = tile.flatten(sum);
    for (std::size_t i = 0; i < fields.size(); ++i)
      b.store(states_ + static_cast<int>(i), {b.block()}, fields[i], lane_0);
    if (plan_.strategy == Strategy::grid256n) return;
    const ValueId grid = blocks(b);
    const ValueId before = b.atomic_add(counter_, {none}, b.constant(DType::u32, 1), lane_0,
                                        AtomicOrder::acquire_release);
    const ValueId last = b.convert(b.sub(grid, b.i64(1)), DType::u32);
    const ValueId is_last = b.both(lane_0, b.compute(Op::eq, {before, last}));
    b.branch(
        b.any(is_last),
        [&] {
          finish(b, tile, merge_states(b, tile, grid, none, 1));
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  void lower_merge() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId count = blocks(b), warp = b.convert(b.warp(), DType::i64);
    Partials sum = merge_states(b, tile, count, warp, plan_.warps);
    sum = reduce_block(b, program_, tile, std::move(sum));
    on_first_warp(b, program_.launches.back().warps, [&] { finish(b, tile, sum); });
  }

  /// `count` states by `warps` warps; every lane of a warp receives the merge of the warp's.
  Partials merge_states(Builder& b, TileLowering& tile, ValueId count, ValueId warp, int warps) {
    const ValueId my = b.mul(warp, b.i64(kWarpWidth));
    const std::int64_t step = std::int64_t{kWarpWidth} * warps;
    const ValueId stride = b.i64(step * kStateLoads);
    const Builder::Values state = b.loop(
        my, count, stride, tile.flatten({tile.identity(0)}),
        [&](ValueId at, const Builder::Values& carried) {
          std::vector<Partials> loaded;
          for (int k = 0; k < kStateLoads; ++k) {
            const ValueId base = b.add(at, b.i64(k * step));
            const ValueId mask =
                b.compute(Op::lt, {b.convert(b.lane(), DType::i64), b.sub(count, base)});
            Partial state = tile.identity(0);
            for (std::size_t i = 0; i < state.fields.size(); ++i) {
              state.fields[i] = b.select(
                  mask, b.load(states_ + static_cast<int>(i), {base}, 1, mask), state.fields[i]);
            }
            loaded.push_back({std::move(state)});
          }
          Partials sum = tile.unflatten(carried);
          for (const Partials& state : loaded) sum = tile.merge(sum, state);
          return tile.flatten(sum);
        });
    return tile.reduce_lanes(tile.unflatten(state), 1, kWarpWidth);
  }

  void finish(Builder& b, TileLowering& tile, const Partials& sum) {
    const ValueId place = b.i64(0), extent = b.param(elements_);
    store_outputs(b, graph_, tile, sum, place, extent, first_lane(b));
  }

  /// Where square k of a unit begins.
  ValueId place(Builder& b, ValueId unit, int k) {
    return b.compute(Op::add, {b.mul(unit, b.i64(unit_)), b.i64(std::int64_t{k} * kSquare)});
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  int elements_;
  std::int64_t unit_;
  int states_ = 0, counter_ = 0;
};

}  // namespace

Program lower_published_whole(const Graph& graph, const Plan& plan, const Target& target) {
  int elements = 0;
  Program program = start_program(graph, plan, target, ParamRole::elements, elements);
  WholeLowering(program, graph, plan, elements).lower();
  return program;
}

}  // namespace chainfold::codegen
