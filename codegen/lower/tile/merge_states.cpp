#include "chainfold/codegen/lower/tile/merge_states.hpp"

#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"

namespace chainfold::codegen {

namespace {

/// With states of more fields than this, half as many: they have to fit into registers.
constexpr std::size_t kManyFields = 4;

class StateMerge {
 public:
  StateMerge(Builder& b, TileLowering& tile, const StateArrays& states, int warps, ValueId first,
             ValueId count)
      : b_(b),
        tile_(tile),
        states_(states),
        warps_(warps),
        loads_(states_in_flight(tile.graph())),
        first_(first),
        count_(count) {}

  /// Lanes take states that lie side by side, trips follow each other.
  Builder::Values strided(const Partials& start) {
    const int stride = kWarpWidth * warps_ * loads_;
    const ValueId my = b_.compute(Op::mul, {b_.convert(b_.warp(), DType::i64), b_.i64(kWarpWidth)});
    return b_.loop(my, count_, b_.i64(stride), tile_.flatten(start),
                   [&](ValueId at, const Builder::Values& carried) {
                     std::vector<Partials> rounds;
                     for (int i = 0; i < loads_; ++i) {
                       const ValueId position =
                           b_.add(at, b_.i64(static_cast<std::int64_t>(i) * kWarpWidth * warps_));
                       rounds.push_back(load(position, 1));
                     }
                     Partials merged = tile_.unflatten(carried);
                     for (const Partials& round : rounds) merged = tile_.merge(merged, round);
                     return tile_.flatten(merged);
                   });
  }

  /// Each lane takes states that follow each other, each warp one run of them all.
  Builder::Values in_order(const Partials& start) {
    const int in_round = kWarpWidth * loads_;
    const ValueId round = b_.i64(in_round);
    const int all = in_round * warps_;
    const ValueId each = b_.mul(b_.div(b_.add(count_, b_.i64(all - 1)), b_.i64(all)), round);
    const ValueId my = b_.mul(b_.convert(b_.warp(), DType::i64), each);
    const ValueId behind = b_.min(b_.add(my, each), count_);
    return b_.loop(my, behind, round, tile_.flatten(start),
                   [&](ValueId at, const Builder::Values& carried) {
                     Partials merged = load(at, loads_);
                     for (int i = 1; i < loads_; ++i)
                       merged = tile_.merge(merged, load(b_.add(at, b_.i64(i)), loads_));
                     return tile_.flatten(
                         tile_.merge(tile_.unflatten(carried, true), tile_.reduce_ordered(merged)));
                   });
  }

 private:
  /// Lane l's state is that at position + l * lane_stride, or none.
  Partials load(ValueId position, int lane_stride) {
    const ValueId places = lane_stride == 1 ? b_.lane() : b_.mul(b_.lane(), b_.i32(lane_stride));
    const ValueId offset = b_.convert(places, DType::i64);
    const ValueId mask = b_.lt(offset, b_.sub(count_, position));
    Address at{.base = b_.add(first_, position)};
    if (lane_stride > 1) at = {.base = at.base, .group = 1, .stride = lane_stride};
    return states_.load(b_, tile_, at, mask);
  }

  Builder& b_;
  TileLowering& tile_;
  const StateArrays& states_;
  int warps_, loads_;
  ValueId first_, count_;
};

}  // namespace

int states_in_flight(const Graph& graph) {
  std::size_t fields = 0;
  for (const Fold& fold : graph.folds) fields += fold.state.size();
  return fields > kManyFields ? kStatesInFlight / 2 : kStatesInFlight;
}

Partials merge_states(Builder& b, Program& program, TileLowering& tile, const StateArrays& states,
                      ValueId first, ValueId count, const Partials& start) {
  StateMerge merge(b, tile, states, program.launches.back().warps, first, count);
  const Builder::Values sum = tile.ordered() ? merge.in_order(start) : merge.strided(start);
  Partials partials = tile.reduce_lanes(tile.unflatten(sum, true), 1, kWarpWidth);
  return reduce_block(b, program, tile, std::move(partials));
}

}  // namespace chainfold::codegen
