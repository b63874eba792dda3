// lower_staged: rows of segments whose elements pass through shared memory.
//
// As many blocks as the target holds at once share the tiles. A trip (`round`) is a tile for each
// warp of a block. Trips that follow each other make a store batch, `store_batch` of them. Blocks
// take store batches in turns, so that what all of them read and write at a time lies close
// together. What is left over for a last turn is shared out evenly, but for some trips at the end.
// Tail blocks take these, `tail_trips` each: they start when other blocks have ended. So
// multiprocessors that memory serves sooner do more. Where `tail_trips` is `store_batch` all blocks
// are such: each takes one store batch. Each warp keeps copies of its next `stages` tiles under
// way, in a ring of its own, across the ends of store batches.
//
// Results gather in shared memory and leave it a store batch at a time. Memory that has to turn
// from reading to writing for every few bytes is slower than memory that does so rarely. Copies are
// aligned to 16 bytes wherever segments begin, so segments of any size are read as fast as any
// other.
//
// Copies reach beyond the input where they bring a tile's surroundings, or where the last tiles are
// not whole ones or do not exist. What arrives from there is anything, and nothing of what becomes
// of it is stored.
#include "chainfold/codegen/lower/fold/staged.hpp"

#include <algorithm>
#include <bit>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/row_tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/staged.hpp"

namespace chainfold::codegen {

namespace {

/// Results are stored by so many bytes a lane, and copies are of whole units of them.
constexpr int kUnitBytes = 16;

/// Tail blocks take a sixteenth of the trips, and are at least as many as the blocks that stay.
/// There are some only where each of those has more to do than eight tail blocks. Multiprocessors
/// that are nearer to memory take more of them than others do, and one that starts last ends soon.
/// If they were fewer, some would run alone.
constexpr int kTailShare = 16, kTailFrom = 8;

/// Parameters that every block reads: segments, trips of all tiles (`rounds`), and those that are
/// not of tail blocks (`lasting`). `turns` counts the whole turns. `last` is the trips of a block
/// in the last turn, or in its only one.
struct StagedParams {
  int segments = -1, rounds = -1, lasting = -1, turns = -1, last = -1;
};

class StagedLowering {
 public:
  StagedLowering(Program& program, const Graph& graph, const Plan& plan, const StagedParams& params)
      : program_(program),
        graph_(graph),
        plan_(plan),
        params_(params),
        b_(program),
        rows_(b_, graph, plan) {
    segments_ = b_.param(params.segments);
    block_ = count(b_.block());
    if (plan.has_tail_blocks()) stays_ = b_.lt(block_, b_.i32(plan.blocks));
    turns_ = plan.one_batch() ? b_.i32(0) : if_stays(count(b_.param(params.turns)), b_.i32(0));
    elements_ = b_.mul(segments_, b_.i64(plan.segment));
    for (const GraphInput& input : graph.inputs) copies_.push_back(stage_copy(plan, input.type));
    declare_shared();
  }

  void lower() {
    const ValueId zero = b_.i32(0), one = b_.i32(1);
    share_out();
    slots_ = b_.mul(b_.warp(), b_.i32(plan_.stages));
    const std::int64_t of_tile = plan_.segments_per_warp() * plan_.segment;
    warps_first_ = b_.mul(wide(b_.warp()), b_.i64(of_tile));
    of_round_ = b_.i64(plan_.warps * of_tile);
    if (plan_.one_batch()) return take_turn(zero);
    const ValueId shares_last = b_.lt(b_.mul(turns_, b_.i32(plan_.staged.store_batch)), rounds_);
    const ValueId turns = b_.select(shares_last, b_.add(turns_, one), turns_);
    b_.loop(zero, turns, one, {}, [&](ValueId turn, const Builder::Values&) {
      take_turn(turn);
      b_.barrier();
      return Builder::Values{};
    });
  }

 private:
  /// Counts what the block has to do.
  void share_out() {
    const ValueId rounds = count(b_.param(params_.rounds));
    const ValueId each = if_stays(count(b_.param(params_.last)), b_.i32(plan_.staged.tail_trips));
    ValueId before = b_.mul(turns_, b_.i32(plan_.blocks * plan_.staged.store_batch)),
            there = rounds;
    if (plan_.has_tail_blocks()) {
      const ValueId lasting = count(b_.param(params_.lasting));
      // Where tail blocks' trips begin, as if there were such blocks for all numbers from 0 on.
      before = if_stays(before, b_.sub(lasting, b_.i32(plan_.blocks * plan_.staged.tail_trips)));
      there = if_stays(lasting, rounds);
    }
    last_ = b_.add(before, b_.mul(block_, each));
    const ValueId of_last = b_.compute(Op::max, {b_.i32(0), b_.min(each, b_.sub(there, last_))});
    rounds_ = b_.add(b_.mul(turns_, b_.i32(plan_.staged.store_batch)), of_last);
  }
  /// One value for blocks that stay, another one for those that are tail blocks.
  ValueId if_stays(ValueId value, ValueId tail) {
    return plan_.has_tail_blocks() ? b_.select(stays_, value, tail) : value;
  }
  /// The first trip of the block's store batch in a turn.
  ValueId first_of(ValueId turn) {
    if (plan_.one_batch()) return last_;
    const ValueId batches = b_.add(b_.mul(turn, b_.i32(plan_.blocks)), block_);
    return b_.select(b_.lt(turn, turns_), b_.mul(batches, b_.i32(plan_.staged.store_batch)), last_);
  }

  void declare_shared() {
    Launch& launch = program_.launches.back();
    const int slots = plan_.warps * plan_.stages;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      launch.shared.push_back(
          {"stage_" + std::to_string(i), graph_.inputs[i].type, slots * copies_[i].elements});
      launch.rings.push_back({"stage_" + std::to_string(i), slots});
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      launch.shared.push_back({"out_" + std::to_string(i), graph_.node(graph_.outputs[i]).type,
                               plan_.warps * plan_.staged.store_batch * plan_.segments_per_warp()});
    }
  }
  ValueId wide(ValueId value) { return b_.convert(value, DType::i64); }
  /// Trips, turns, slots and results that wait in shared memory are counted in 32 bits. So many
  /// trips, each a tile of kLeastStagedTile bytes at least, are half a tebibyte.
  ValueId count(ValueId value) { return b_.convert(value, DType::i32); }

  /// The first element of the warp's tile of a trip, and the slot of the `number`th that it folds.
  ValueId element_of(ValueId round) { return b_.add(b_.mul(wide(round), of_round_), warps_first_); }
  ValueId slot_of(ValueId number) {
    return wide(b_.add(slots_, b_.compute(Op::bit_and, {number, b_.i32(plan_.stages - 1)})));
  }

  /// Whether every segment begins on 16 bytes.
  [[nodiscard]] bool whole(std::size_t input) const {
    return plan_.base_alignment >= kUnitBytes &&
           plan_.segment * size_of(graph_.inputs[input].type) % kUnitBytes == 0;
  }

  void start_copies(ValueId element, ValueId slot) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (!rows_.tile().uses_input(i)) continue;
      const auto index = static_cast<int>(i);
      b_.copy_async({.buffer = index,
                     .first = element,
                     .unit = copies_[i].unit,
                     .array = index,
                     .to = b_.mul(slot, b_.i64(copies_[i].elements)),
                     .elements = copies_[i].elements,
                     .limit = elements_,
                     .whole = whole(i),
                     .ring = index,
                     .slot = slot});
    }
  }

  /// Folds a turn's tiles and stores what became of them. Into a tile's slot comes then the one
  /// `stages` trips later. The first turn begins so many trips early, that the first ones come.
  void take_turn(ValueId turn) {
    const ValueId first = first_of(turn), zero = b_.i32(0),
                  batch = b_.i32(plan_.staged.store_batch);
    const ValueId number = b_.mul(turn, batch);  // of the warp's first tile
    // Where the copies go on.
    const ValueId next =
        plan_.one_batch() ? first : b_.sub(first_of(b_.add(turn, b_.i32(1))), batch);
    const ValueId rounds = b_.min(batch, b_.sub(rounds_, number));
    const int per_round = plan_.warps * plan_.segments_per_warp();
    const ValueId segment = b_.mul(wide(first), b_.i64(per_round));
    const ValueId early = b_.select(b_.compute(Op::eq, {turn, zero}), b_.i32(-plan_.stages), zero);
    b_.loop(early, rounds, b_.i32(1), {}, [&](ValueId r, const Builder::Values&) {
      const ValueId tile = b_.add(number, r), slot = slot_of(tile);
      b_.branch(
          b_.compute(Op::ge, {r, zero}),
          [&] {
            fold_tile(b_.add(first, r), r, tile, slot);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
      const ValueId later = b_.add(r, b_.i32(plan_.stages));
      b_.branch(
          b_.lt(b_.add(number, later), rounds_),
          [&] {
            const ValueId from = b_.select(b_.lt(later, batch), first, next);
            start_copies(element_of(b_.add(from, later)), slot);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
      return Builder::Values{};
    });
    b_.barrier();
    const ValueId results =
        b_.min(wide(b_.mul(rounds, b_.i32(per_round))), b_.sub(segments_, segment));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) flush(i, segment, count(results));
  }

  /// Folds the warp's tile of trip `round`, the `r`th of its store batch and its `number`th.
  void fold_tile(ValueId round, ValueId r, ValueId number, ValueId slot) {
    const int stages = std::countr_zero(static_cast<unsigned>(plan_.stages));
    std::vector<ValueId> bases;
    ValueId before = kNoValue;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto index = static_cast<int>(i);
      const ValueId base = b_.mul(slot, b_.i64(copies_[i].elements));
      before =
          copies_[i].exact ? b_.i64(0) : b_.misalignment(index, element_of(round), copies_[i].unit);
      bases.push_back(plan_.staged.straddle ? base : b_.add(base, before));
      if (rows_.tile().uses_input(i))
        b_.copy_wait(index, slot, wide(b_.compute(Op::shr, {number, b_.i32(stages)})));
    }
    rows_.read_stage(std::move(bases), before);  // of the only input, where it counts
    const ValueId tile = b_.add(b_.mul(r, b_.i32(plan_.warps)), b_.warp());  // of the batch
    const ValueId results = b_.mul(tile, b_.i32(plan_.segments_per_warp()));
    const auto first_segment = [&] {
      const std::int64_t of_warp = plan_.segments_per_warp();
      return b_.add(b_.mul(wide(round), b_.i64(plan_.warps * of_warp)),
                    b_.mul(wide(b_.warp()), b_.i64(of_warp)));
    };
    rows_.lies_at(first_segment, segments_);
    rows_.lower_tile(b_.i64(0), kNoValue,
                     [&](std::size_t output, ValueId offset, ValueId value, ValueId mask) {
                       const ValueId place = b_.add(results, b_.convert(offset, DType::i32));
                       b_.shared_store(out_array(output), {wide(place)}, value, mask);
                     });
  }

  int out_array(std::size_t output) const {
    return static_cast<int>(graph_.inputs.size() + output);
  }

  /// The `results` results of a store batch go to an output's segments from `segment` on. Stores
  /// are of 16 bytes a lane where the output begins on such a boundary there, else of one result.
  void flush(std::size_t output, ValueId segment, ValueId results) {
    const int buffer = static_cast<int>(graph_.inputs.size() + output);
    const int width = kUnitBytes / size_of(graph_.node(graph_.outputs[output]).type);
    const ValueId aligned =
        b_.compute(Op::eq, {b_.misalignment(buffer, segment, kUnitBytes), b_.i64(0)});
    const ValueId whole = b_.compute(Op::bit_and, {results, b_.i32(-width)});
    const ValueId vectors = b_.select(aligned, whole, b_.i32(0));
    store_run(output, segment, b_.i32(0), vectors, width);
    store_run(output, segment, vectors, results, 1);
  }
  void store_run(std::size_t output, ValueId segment, ValueId from, ValueId to, int width) {
    const int step = kWarpWidth * width;
    const ValueId mine = b_.add(from, b_.mul(b_.warp(), b_.i32(step)));
    b_.loop(mine, to, b_.i32(step * plan_.warps), {}, [&](ValueId at, const Builder::Values&) {
      const ValueId mask = b_.lt(b_.mul(b_.lane(), b_.i32(width)), b_.sub(to, at));
      const ValueId values = b_.shared_load(out_array(output), {wide(at)}, width, mask);
      b_.store(static_cast<int>(graph_.inputs.size() + output), {b_.add(segment, wide(at))}, values,
               mask);
      return Builder::Values{};
    });
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  const StagedParams params_;
  Builder b_;
  RowTile rows_;
  std::vector<StageCopy> copies_;
  ValueId segments_ = kNoValue, elements_ = kNoValue;
  ValueId stays_ = kNoValue;  // whether the block is no tail block
  ValueId block_ = kNoValue;
  ValueId turns_ = kNoValue;   // whole ones
  ValueId last_ = kNoValue;    // the first trip of the block's store batch behind them
  ValueId rounds_ = kNoValue;  // of the block
  ValueId slots_ = kNoValue;   // the warp's first
  ValueId warps_first_ = kNoValue, of_round_ = kNoValue;  // elements: before the warp's tile; all
};

/// Tail blocks that found room beside the others would come at once. More blocks of one store batch
/// would have more under way than is good. Shared memory that no block needs keeps them out.
void keep_others_out(Launch& launch, const Plan& plan, const Target& target) {
  const std::int64_t needed = shared_layout(launch).bytes;
  const std::int64_t least = target.shared_of(plan.occupancy + 1) + kUnitBytes;
  if (needed < least)
    launch.shared.push_back(
        {"spare", DType::u8, static_cast<int>((least - needed - 1) / kUnitBytes + 1) * kUnitBytes});
}

}  // namespace

Program lower_staged(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_staged";
  declare_graph(program, graph, plan, target);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const int size = size_of(graph.inputs[i].type);
    if (plan.staged.straddle) program.buffers[i].alignment = size;
    const bool whole = plan.segment * size % kUnitBytes == 0;
    if (whole && plan.base_alignment >= kUnitBytes) program.buffers[i].alignment = kUnitBytes;
  }
  StagedParams params;
  params.segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const auto size = [&](int param) { return param_size(program, param); };
  const std::int64_t per_block = std::int64_t{plan.warps} * plan.segments_per_warp();
  params.rounds = add_size(program, "rounds", max(ceil_div(size(params.segments), per_block), 1));
  const SizeExpr rounds = size(params.rounds);
  SizeExpr grid;
  if (plan.one_batch()) {
    // As even as whole trips allow: of as many waves of blocks as store batches make, all end
    // alike.
    const SizeExpr waves = ceil_div(rounds, plan.blocks * plan.staged.store_batch);
    params.last = add_size(program, "rounds_of_block", ceil_div(rounds, waves * plan.blocks));
    grid = ceil_div(rounds, size(params.last));
  } else {
    SizeExpr tail = 0, others = rounds;
    if (plan.has_tail_blocks()) {
      const SizeExpr some =
          max(ceil_div(rounds, std::int64_t{plan.staged.tail_trips} * kTailShare), plan.blocks);
      const SizeExpr beyond = max(rounds - plan.blocks * plan.staged.tail_trips * kTailFrom, 0);
      tail = min(some, beyond * plan.blocks);
      params.lasting =
          add_size(program, "rounds_that_last", rounds - tail * plan.staged.tail_trips);
      others = size(params.lasting);
    }
    // Blocks take whole turns while others are left behind them; the last one is shared out.
    const std::int64_t of_turn = plan.blocks * plan.staged.store_batch;
    params.turns = add_size(program, "turns", ceil_div(others, of_turn) - 1);
    const SizeExpr left = others - size(params.turns) * of_turn;
    params.last = add_size(program, "rounds_of_last", ceil_div(left, plan.blocks));
    grid = min(others, plan.blocks) + tail;
  }
  program.launches.push_back({.name = "fold_staged",
                              .grid = grid,
                              .warps = plan.warps,
                              .min_blocks = plan.occupancy,
                              .lasting = plan.has_tail_blocks() ? plan.blocks : 0,
                              .bulk_copies = target.bulk_copies});
  StagedLowering(program, graph, plan, params).lower();
  if (plan.staged.tail_trips > 0) keep_others_out(program.launches.back(), plan, target);
  return program;
}

}  // namespace chainfold::codegen
