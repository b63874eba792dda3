// lower_head_tiles: folds over segments that a condition begins.
//
// First launches count the heads of each stretch of elements (head_chunks.hpp). `fold_heads` has a
// warp a stretch, which looks at the condition once more and folds tile by tile (head_tile.hpp).
// Which segment a head begins follows from how many heads come before it. What a stretch has of the
// segment that its first head ends, and the state of what goes on behind it, go to scratch.
// `merge_heads` has a block a stretch. It merges, in their order, the states of all stretches in
// which the segment lies that the first head ends. A head behind the last element ends the last
// segment.
#include "chainfold/codegen/lower/fold/head_tiles.hpp"

#include <memory>
#include <utility>

#include "chainfold/codegen/lower/fold/head_chunks.hpp"
#include "chainfold/codegen/lower/fold/head_tile.hpp"
#include "chainfold/codegen/lower/fold/path_outputs.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/merge_states.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/head_tiles.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {

class HeadTilesLowering {
 public:
  HeadTilesLowering(const Graph& graph, const Plan& plan, const Target& target)
      : graph_(graph), plan_(plan) {
    program_.name = "head_tiles";
    declare_graph(program_, graph, plan, target);
    elements_ = add_param(program_, "elements", DType::i64, ParamRole::elements);
    status_ = declare_status(program_);
    // The place behind all elements lies in a stretch as well.
    const SizeExpr places = param_size(program_, elements_) + 1;
    const SizeExpr tiles = ceil_div(places, elements_a_row(plan));
    const SizeExpr each =
        min(max(ceil_div(tiles, plan.parts.wanted), 1), kMostItems / elements_a_row(plan));
    length_ = add_size(program_, "stretch", each * elements_a_row(plan));
    stretches_ = add_size(program_, "stretches", ceil_div(places, param_size(program_, length_)));
    chunks_ = std::make_unique<HeadChunks>(program_, graph, elements_, length_, stretches_, true,
                                           asks_heads(graph_));
    open_ = static_cast<int>(program_.buffers.size());
    declare_states(program_, graph, param_size(program_, stretches_), 1, "open");
    begun_ = static_cast<int>(program_.buffers.size());
    declare_states(program_, graph, param_size(program_, stretches_), 1, "begun");
  }

  Program lower() {
    chunks_->lower();
    program_.launches.push_back({.name = "fold_heads",
                                 .grid = param_size(program_, stretches_),
                                 .warps = 1,
                                 .min_blocks = plan_.occupancy});
    lower_fold();
    program_.launches.push_back(
        {.name = "merge_heads", .grid = param_size(program_, stretches_), .warps = plan_.warps});
    lower_merge();
    return std::move(program_);
  }

 private:
  /// How many elements the segment has that a stretch's first head ends.
  ValueId extent_of(Builder& b, ValueId stretch) {
    if (!asks_heads(graph_)) return kNoValue;
    const ValueId head = chunks_->first_of(b, stretch);
    const ValueId end = b.select(b.lt(head, b.i64(0)), b.param(elements_), head);
    return b.sub(end, chunks_->last_before(b, stretch));
  }
  static StateArrays states(int first) { return {StateArrays::Memory::global, first}; }

  void lower_fold() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    HeadTile heads(b, program_, tile, graph_, plan_, b.param(elements_));
    PathOutputs outputs(b, tile, graph_, plan_, *chunks_, kNoValue, false);
    const ValueId begin = b.mul(b.block(), b.param(length_));
    const ValueId left = b.sub(b.add(b.param(elements_), b.i64(1)), begin);
    const ValueId places = b.convert(b.min(b.param(length_), left), DType::i32);
    const ValueId before = chunks_->heads_before(b, b.block());
    const HeadTile::Sink ended = [&](const HeadTile::Ended& some) {
      // The stretch's first head ends what began before it.
      const ValueId own = b.add(some.rank, b.lane());
      const ValueId is_first = b.compute(Op::eq, {own, b.i32(0)});
      states(begun_).store(b, tile, {.base = b.block(), .group = 1, .stride = 0}, some.states,
                           b.both(some.exist, is_first));
      const ValueId first = b.add(before, b.sub(b.convert(some.rank, DType::i64), b.i64(1)));
      outputs.put(first, some.states, some.extent,
                  b.both(some.exist, b.compute(Op::bit_not, {is_first})));
    };
    // The next tile's loads are under way while a tile is folded.
    const ValueId yes = b.boolean(true);
    const ValueId head_at = asks_heads(graph_) ? chunks_->last_before(b, b.block()) : kNoValue;
    Builder::Values init = heads.flatten(heads.begin(head_at));
    const auto fields = static_cast<std::ptrdiff_t>(init.size());
    const Builder::Values elements = heads.load_elements(begin, yes);
    init.insert(init.end(), elements.begin(), elements.end());
    heads.expect(begin, yes);
    heads.mark_heads();
    const ValueId row = b.i32(elements_a_row(plan_));
    const Builder::Values last =
        b.loop(b.i32(0), places, row, init, [&](ValueId at, const Builder::Values& carried) {
          const ValueId next = b.add(at, row), there = b.lt(next, places);
          const ValueId next_tile = b.add(begin, b.convert(next, DType::i64));
          const Builder::Values following = heads.load_elements(next_tile, there);
          heads.expect(next_tile, there);
          const HeadTile::Carry carry =
              heads.fold(b.add(begin, b.convert(at, DType::i64)),
                         Builder::Values(carried.begin() + fields, carried.end()),
                         heads.unflatten({carried.begin(), carried.begin() + fields}), ended);
          heads.mark_heads();
          Builder::Values yields = heads.flatten(carry);
          yields.insert(yields.end(), following.begin(), following.end());
          return yields;
        });
    const HeadTile::Carry still = heads.unflatten({last.begin(), last.begin() + fields});
    states(open_).store_one(b, tile, b.block(), heads.going().settle(still.going));
  }

  void lower_merge() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    chunks_->tell(b, status_, plan_.warps);
    const ValueId stretch = b.block();
    const ValueId is_last = b.compute(Op::eq, {stretch, b.sub(b.param(stretches_), b.i64(1))});
    const ValueId has_heads = b.lt(b.i64(0), chunks_->heads_of(b, stretch));
    const ValueId segment = b.sub(chunks_->heads_before(b, stretch), b.i64(1));
    const ValueId begun = b.compute(Op::ge, {segment, b.i64(0)});
    b.branch(
        b.both(begun, b.compute(Op::bit_or, {is_last, has_heads})),
        [&] {
          const ValueId first = chunks_->begun_in(b, stretch);
          const Partials all = merge_states(b, program_, tile, states(open_), first,
                                            b.sub(stretch, first), tile.identities());
          on_first_warp(b, plan_.warps, [&] {
            const Partials folded = tile.merge(all, states(begun_).load_one(b, tile, stretch));
            PathOutputs outputs(b, tile, graph_, plan_, *chunks_, kNoValue, false);
            outputs.put_one(segment, folded, extent_of(b, stretch));
          });
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  Program program_;
  const Graph& graph_;
  const Plan& plan_;
  std::unique_ptr<HeadChunks> chunks_;
  int elements_ = 0;  // a parameter
  StatusParams status_{};
  int length_ = 0, stretches_ = 0;  // sizes
  int open_ = 0, begun_ = 0;        // buffers
};

}  // namespace

Program lower_head_tiles(const Graph& graph, const Plan& plan, const Target& target) {
  return HeadTilesLowering(graph, plan, target).lower();
}

}  // namespace chainfold::codegen
