// lower_staged: rows of segments whose elements pass through shared memory.
//
// As many blocks as the target holds at once share the tiles, each a contiguous run of them. A
// block's warps take its tiles in turns, a round of which is one for each. Each warp keeps copies
// of its next `stages` tiles under way, in a ring of its own; results gather in shared memory and
// leave it `burst` rounds at a time, because memory that has to turn from reading to writing for
// every few bytes is slower than memory that does so rarely. Copies are aligned to 16 bytes
// wherever segments begin, so segments of any size are read as fast as any other.
//
// Even shares do not end together: some processors are further from memory than others. With
// `ticket`, an eighth of many tiles is not shared out: blocks that are done with their share take
// `ticket` rounds of it at a time, at the end fewer. A block takes its next ticket while the rounds
// before it are still to be folded, so that copies go on from the ones to the others.
//
// Where copies bring a tile's surroundings, or the last tile is not a whole one, they reach beyond
// the input: what arrives from there is anything, and nobody stores what becomes of it.
#include <algorithm>
#include <bit>

#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_row_tile.hpp"

namespace chainfold::codegen {

namespace {

/// Results are stored by so many bytes a lane, and copies are of whole units of them.
constexpr int kUnitBytes = 16;
/// One of so many rounds is not shared out but taken by tickets.
constexpr int kTicketShare = 8;
/// The smallest ticket brings so small a part of the largest.
constexpr int kTicketSizes = 8;
/// Rounds a block, in tickets, from which on tickets are worth the launch that clears their
/// counter.
constexpr std::int64_t kTicketsFrom = 16;

/// Segments from which on tickets are taken.
std::int64_t least_segments_of_tickets(const Plan& plan) {
  return kTicketsFrom * plan.ticket * plan.blocks * plan.warps * plan.segments_per_warp();
}

/// The launch after which no ticket is taken; none where none will be.
int clear_tickets(Program& program, const Plan& plan, const SizeExpr& segments) {
  const SizeExpr there = max(min(segments - (least_segments_of_tickets(plan) - 1), 1), 0);
  program.buffers.push_back(
      {"tickets", DType::i64, BufferRole::scratch, 0, size_of(DType::i64), there});
  const auto counter = static_cast<int>(program.buffers.size()) - 1;
  program.launches.push_back({.name = "clear", .grid = there, .warps = 1});
  Builder b(program);
  b.store(counter, {b.i64(0)}, b.i64(0), b.compute(Op::eq, {b.lane(), b.i32(0)}));
  return counter;
}

class StagedLowering {
 public:
  StagedLowering(Program& program, const Graph& graph, const Plan& plan, int segments, int counter)
      : program_(program),
        graph_(graph),
        plan_(plan),
        b_(program),
        rows_(b_, graph, plan),
        counter_(counter) {
    segments_ = b_.param(segments);
    elements_ = b_.mul(segments_, b_.i64(plan.segment));
    for (const GraphInput& input : graph.inputs) copies_.push_back(stage_copy(plan, input.type));
    declare_shared();
  }

  void lower() {
    const ValueId zero = b_.i64(0), one = b_.i64(1), burst = b_.i64(plan_.burst);
    tiles_ = up(segments_, b_.i64(plan_.segments_per_warp()));
    rounds_ = up(tiles_, b_.i64(plan_.warps));
    const ValueId each = share_out();
    const ValueId begin = b_.mul(b_.block(), each);
    const ValueId end = b_.min(b_.add(begin, each), rounds_);
    const ValueId bursts = up(most(zero, b_.sub(end, begin)), burst);
    slots_ = b_.mul(wide(b_.warp()), b_.i64(plan_.stages));
    const auto of_share = [&](ValueId number) {
      const ValueId first = b_.add(begin, b_.mul(number, burst));
      const ValueId left = most(zero, b_.sub(end, first));
      return Run{first, b_.min(left, burst), left};
    };

    const Run first = of_share(zero);
    b_.loop(zero, b_.min(tiles_of(first), b_.i64(plan_.stages)), one, {},
            [&](ValueId r, const Builder::Values&) {
              start_copies(element_of(b_.add(first.first, r)), slot_of(r));
              return Builder::Values{};
            });
    if (plan_.ticket == 0) {
      b_.loop(zero, bursts, one, {}, [&](ValueId number, const Builder::Values&) {
        fold_run(of_share(number), {}, b_.mul(number, burst));
        b_.barrier();
        return Builder::Values{};
      });
      return;
    }
    // No block takes more than four times its part of the tickets: all are taken nevertheless, and
    // the loop ends where its bound says.
    const ValueId turns = b_.mul(up(tickets_, b_.i64(plan_.blocks)), b_.i64(4));
    const ValueId runs = b_.add(bursts, turns);
    b_.loop(zero, runs, one, {first.first, first.rounds, zero},
            [&](ValueId number, const Builder::Values& carried) {
              const ValueId at = carried[0], rounds = carried[1], folded = carried[2];
              const ValueId left = b_.select(b_.lt(at, end), b_.sub(end, at), rounds);
              const ValueId behind = b_.add(at, burst), shared = b_.lt(behind, end);
              const ValueId here = b_.lt(zero, rounds), more = b_.lt(b_.add(number, one), runs);
              const ValueId last = b_.compute(Op::ge, {behind, end});
              const ValueId wants = b_.both(b_.both(here, more), last);
              // A barrier of those that have work: what the run before left is stored.
              const ValueId taken = b_.branch_uniform(
                  wants, [&] { return b_.ticket(counter_); },
                  [&] {
                    return b_.branch_uniform(
                        here,
                        [&] {
                          b_.barrier();
                          return zero;
                        },
                        [&] { return zero; });
                  });
              const Run next = of_ticket(taken, wants);
              b_.branch(
                  here,
                  [&] {
                    fold_run({at, rounds, left}, next, folded);
                    return Builder::Values{};
                  },
                  [] { return Builder::Values{}; });
              const ValueId of_share = b_.min(b_.sub(end, behind), burst);
              return Builder::Values{b_.select(shared, behind, next.first),
                                     b_.select(shared, of_share, next.rounds),
                                     b_.add(folded, rounds)};
            });
  }

 private:
  /// Rounds that follow each other: the first of them, their number, and how many follow each other
  /// from the first on, whose copies may be under way together.
  struct Run {
    ValueId first = kNoValue, rounds = kNoValue, left = kNoValue;
  };

  /// The rounds of a block's share. Sets what tickets are for: what is left.
  ValueId share_out() {
    const ValueId zero = b_.i64(0), blocks = b_.i64(plan_.blocks);
    const ValueId evenly = up(rounds_, blocks);
    if (plan_.ticket == 0) return evenly;
    const ValueId many = b_.compute(Op::ge, {segments_, b_.i64(least_segments_of_tickets(plan_))});
    const ValueId kept = b_.sub(rounds_, b_.div(rounds_, b_.i64(kTicketShare)));
    const ValueId stages = b_.i64(plan_.stages);
    const ValueId each = b_.mul(b_.div(b_.div(kept, blocks), stages), stages);
    shared_ = b_.mul(each, blocks);
    const ValueId rest = b_.sub(rounds_, shared_);
    const ValueId whole = b_.i64(plan_.ticket);
    const ValueId last = b_.mul(whole, blocks);
    large_ = b_.div(b_.sub(rest, last), whole);
    std::int64_t smaller = 0, rounds = 0;  // tickets, and what they bring
    for (const int size : sizes()) {
      smaller += plan_.blocks;
      rounds += size * plan_.blocks;
    }
    const ValueId brought = b_.add(b_.mul(large_, whole), b_.i64(rounds));
    const ValueId left = up(b_.sub(rest, brought), b_.i64(least()));
    const ValueId all = b_.add(b_.add(large_, b_.i64(smaller)), left);
    tickets_ = b_.select(many, all, zero);
    return b_.select(many, each, evenly);
  }
  /// Rounds of the smallest tickets: the copies of one are under way before the one before it ends.
  [[nodiscard]] int least() const { return std::max(plan_.stages, plan_.ticket / kTicketSizes); }
  /// Rounds of tickets behind the large ones, of which there are as many as blocks each.
  [[nodiscard]] std::vector<int> sizes() const {
    std::vector<int> sizes;
    for (int size = plan_.ticket / 2; size >= least(); size /= 2) sizes.push_back(size);
    return sizes;
  }
  /// What a ticket brings; nothing unless it was `taken`, or if all is taken.
  Run of_ticket(ValueId ticket, ValueId taken) {
    const ValueId zero = b_.i64(0), blocks = b_.i64(plan_.blocks);
    const ValueId more = b_.sub(ticket, large_);
    ValueId size = b_.i64(least());
    const std::vector<int> smaller = sizes();
    const auto count = static_cast<std::int64_t>(smaller.size());
    const ValueId large = b_.mul(large_, b_.i64(plan_.ticket));
    std::vector<std::int64_t> before{0};  // a size, and in the end all of them
    for (const int of : smaller) before.push_back(before.back() + of * plan_.blocks);
    ValueId at = b_.add(b_.add(large, b_.i64(before.back())),
                        b_.mul(b_.sub(more, b_.i64(count * plan_.blocks)), size));
    for (std::int64_t k = count; k-- > 0;) {
      const auto i = static_cast<std::size_t>(k);
      const ValueId of = b_.lt(more, b_.mul(blocks, b_.i64(k + 1)));
      const ValueId within = b_.sub(more, b_.i64(k * plan_.blocks));
      at = b_.select(
          of, b_.add(b_.add(large, b_.i64(before[i])), b_.mul(within, b_.i64(smaller[i]))), at);
      size = b_.select(of, b_.i64(smaller[i]), size);
    }
    const ValueId is_large = b_.lt(more, zero);
    size = b_.select(is_large, b_.i64(plan_.ticket), size);
    at = b_.add(shared_, b_.select(is_large, b_.mul(ticket, b_.i64(plan_.ticket)), at));
    const ValueId brought = most(zero, b_.min(size, b_.sub(rounds_, at)));
    const ValueId mine = b_.select(taken, brought, zero);
    return {at, mine, mine};
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
                               plan_.warps * plan_.burst * plan_.segments_per_warp()});
    }
  }
  ValueId wide(ValueId value) { return b_.convert(value, DType::i64); }
  /// ceil(a / b) of a >= 0.
  ValueId up(ValueId a, ValueId b) { return b_.div(b_.add(a, b_.sub(b, b_.i64(1))), b); }

  ValueId most(ValueId a, ValueId b) { return b_.compute(Op::max, {a, b}); }

  /// The first element of the warp's tile of a round, and the slot of the `number`th that it folds.
  ValueId element_of(ValueId round) {
    const ValueId tile = b_.add(b_.mul(round, b_.i64(plan_.warps)), wide(b_.warp()));
    return b_.mul(tile, b_.i64(plan_.segments_per_warp() * plan_.segment));
  }
  ValueId slot_of(ValueId number) {
    return b_.add(slots_, b_.compute(Op::bit_and, {number, b_.i64(plan_.stages - 1)}));
  }
  /// The warp's tiles from a run's first round on, as far as rounds follow each other: one a round,
  /// but for the last of all.
  ValueId tiles_of(const Run& run) {
    const ValueId warps = b_.i64(plan_.warps);
    const ValueId there = b_.sub(tiles_, b_.mul(run.first, warps));
    const ValueId mine = most(b_.i64(0), b_.min(b_.mul(run.left, warps), there));
    const ValueId behind = b_.sub(b_.i64(plan_.warps - 1), wide(b_.warp()));
    return b_.div(b_.add(mine, behind), warps);
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

  /// Folds a run's tiles, of which the warp's first is its `number`th, and stores what became of
  /// them. `next` has the rounds behind those that follow each other, if there are any.
  void fold_run(const Run& run, const Run& next, ValueId number) {
    const ValueId ahead = tiles_of(run);  // those behind the run, too
    ValueId all = ahead, jump = kNoValue;
    if (next.first != kNoValue) {
      all = b_.add(ahead, tiles_of(next));
      jump = b_.sub(next.first, ahead);
    }
    b_.loop(b_.i64(0), b_.min(run.rounds, ahead), b_.i64(1), {},
            [&](ValueId r, const Builder::Values&) {
              // The tile that comes into this one's slot.
              const ValueId later = b_.add(r, b_.i64(plan_.stages)), exists = b_.lt(later, all);
              const ValueId from =
                  jump == kNoValue ? run.first : b_.select(b_.lt(later, ahead), run.first, jump);
              const ValueId round = b_.add(from, later);
              fold_tile(b_.add(run.first, r), r, b_.add(number, r), exists, round);
              return Builder::Values{};
            });
    b_.barrier();
    const ValueId per_round = b_.i64(std::int64_t{plan_.warps} * plan_.segments_per_warp());
    const ValueId at = b_.mul(run.first, per_round);
    const ValueId count = b_.min(b_.mul(run.rounds, per_round), b_.sub(segments_, at));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) flush(i, at, count);
  }

  /// Folds the warp's tile of `round`, the `r`th of its run and its `number`th; in its slot begin
  /// then the copies of its tile of `later`, if that exists.
  void fold_tile(ValueId round, ValueId r, ValueId number, ValueId exists, ValueId later) {
    const ValueId element = element_of(round), slot = slot_of(number);
    const int rounds = std::countr_zero(static_cast<unsigned>(plan_.stages));
    std::vector<ValueId> bases;
    ValueId before = kNoValue;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto index = static_cast<int>(i);
      const ValueId base = b_.mul(slot, b_.i64(copies_[i].elements));
      before = copies_[i].exact ? b_.i64(0) : b_.misalignment(index, element, copies_[i].unit);
      bases.push_back(plan_.straddle ? base : b_.add(base, before));
      if (rows_.tile().uses_input(i))
        b_.copy_wait(index, slot, b_.compute(Op::shr, {number, b_.i64(rounds)}));
    }
    rows_.read_stage(std::move(bases), before);  // of the only input, where it counts
    const ValueId within = b_.add(b_.mul(r, b_.i64(plan_.warps)), wide(b_.warp()));
    const ValueId results = b_.mul(within, b_.i64(plan_.segments_per_warp()));
    rows_.lower_tile(
        b_.i64(0), kNoValue,
        [&](std::size_t output, int offset, ValueId value, ValueId mask) {
          b_.shared_store(out_array(output), {b_.add(results, b_.i64(offset))}, value, mask);
        },
        [&] {
          b_.branch(
              exists,
              [&] {
                start_copies(element_of(later), slot);
                return Builder::Values{};
              },
              [] { return Builder::Values{}; });
        });
  }

  int out_array(std::size_t output) const {
    return static_cast<int>(graph_.inputs.size() + output);
  }

  /// Results [0, count) of an output go to the segments from `segment` on: 16 bytes a lane where
  /// the output begins on such a boundary there, else one by one.
  void flush(std::size_t output, ValueId segment, ValueId count) {
    const int buffer = static_cast<int>(graph_.inputs.size() + output);
    const int width = std::max(1, kUnitBytes / size_of(graph_.node(graph_.outputs[output]).type));
    const ValueId aligned =
        b_.compute(Op::eq, {b_.misalignment(buffer, segment, kUnitBytes), b_.i64(0)});
    const ValueId whole = b_.mul(b_.div(count, b_.i64(width)), b_.i64(width));
    const ValueId vectors = width == 1 ? b_.i64(0) : b_.select(aligned, whole, b_.i64(0));
    if (width > 1) store_run(output, segment, b_.i64(0), vectors, width);
    store_run(output, segment, vectors, count, 1);
  }
  void store_run(std::size_t output, ValueId segment, ValueId from, ValueId to, int width) {
    const int step = kWarpWidth * width;
    const ValueId mine = b_.add(from, b_.mul(wide(b_.warp()), b_.i64(step)));
    b_.loop(mine, to, b_.i64(std::int64_t{step} * plan_.warps), {},
            [&](ValueId at, const Builder::Values&) {
              const ValueId lanes = wide(b_.mul(b_.lane(), b_.i32(width)));
              const ValueId mask = b_.lt(lanes, b_.sub(to, at));
              const ValueId values = b_.shared_load(out_array(output), {at}, width, mask);
              b_.store(static_cast<int>(graph_.inputs.size() + output), {b_.add(segment, at)},
                       values, mask);
              return Builder::Values{};
            });
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  Builder b_;
  RowTile rows_;
  std::vector<StageCopy> copies_;
  ValueId segments_ = kNoValue, elements_ = kNoValue, tiles_ = kNoValue, rounds_ = kNoValue;
  ValueId slots_ = kNoValue;  // the warp's first
  // Of tickets: their counter; how many there are, how many of them are large; the rounds that are
  // shared out before.
  int counter_ = -1;
  ValueId tickets_ = kNoValue, large_ = kNoValue, shared_ = kNoValue;
};

}  // namespace

Program lower_staged(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "fold_staged";
  declare_graph(program, graph, plan);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const int size = size_of(graph.inputs[i].type);
    if (plan.straddle) program.buffers[i].alignment = size;
    const bool whole = plan.segment * size % kUnitBytes == 0;
    if (whole && plan.base_alignment >= kUnitBytes) program.buffers[i].alignment = kUnitBytes;
  }
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const std::int64_t per_block = std::int64_t{plan.warps} * plan.segments_per_warp();
  const SizeExpr wanted = max(ceil_div(SizeExpr::param(segments, "segments"), per_block), 1);
  const bool takes = plan.ticket > 0;
  const int counter =
      takes ? clear_tickets(program, plan, SizeExpr::param(segments, "segments")) : -1;
  program.launches.push_back({.name = "fold_staged",
                              .grid = min(wanted, plan.blocks),
                              .warps = plan.warps,
                              .min_blocks = plan.resident,
                              .overlaps = takes && target.overlaps,
                              .bulk_copies = target.bulk_copies});
  StagedLowering(program, graph, plan, segments, counter).lower();
  return program;
}

}  // namespace chainfold::codegen
