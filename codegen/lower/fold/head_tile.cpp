#include "chainfold/codegen/lower/fold/head_tile.hpp"

#include <utility>

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/tile/lane_scans.hpp"
#include "chainfold/codegen/plan/head_tiles.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {
/// Words of a lane for what the condition reads of the next tile, as far as registers hold them
/// beside a tile that is folded.
constexpr int kMostWords = 32;
}  // namespace

HeadTile::HeadTile(Builder& builder, Program& program, TileLowering& tile, const Graph& graph,
                   const Plan& plan, ValueId elements)
    : b_(builder),
      tile_(tile),
      graph_(graph),
      plan_(plan),
      going_(builder, tile, graph, true),
      elements_(elements),
      each_(elements_a_lane(plan)),
      early_(HeadCondition(builder, graph).words() * each_ <= kMostWords),
      asks_places_(reads_index(graph)),
      asks_extent_(segments_read_extent(graph)),
      asks_heads_(asks_heads(graph)) {
  auto& shared = program.launches.back().shared;
  flags_ = static_cast<int>(shared.size());
  shared.push_back({"heads", DType::u8, kWarpWidth * each_});
  slots_ = StateArrays::in_shared(program, graph, "slot", kWarpWidth * each_);
  heads_at_ = static_cast<int>(shared.size());
  if (asks_heads_) shared.push_back({"head_at", DType::i32, kWarpWidth * each_});
}

HeadTile::Carry HeadTile::begin(ValueId head_at) {
  Carry carry{.going = going_.from(tile_.identities()), .heads = b_.i32(0)};
  if (asks_heads_) carry.head_at = b_.splat(head_at);
  return carry;
}

Builder::Values HeadTile::flatten(const Carry& carry) {
  Builder::Values values = going_.flatten(carry.going);
  values.push_back(carry.heads);
  if (carry.head_at != kNoValue) values.push_back(carry.head_at);
  return values;
}

HeadTile::Carry HeadTile::unflatten(Builder::Values values) {
  Carry carry;
  if (asks_heads_) {
    carry.head_at = values.back();
    values.pop_back();
  }
  carry.heads = values.back();
  values.pop_back();
  carry.going = going_.unflatten(values);
  return carry;
}

ValueId HeadTile::place_of(int element) {
  return b_.add(b_.mul(b_.lane(), b_.i32(each_)), b_.i32(element));
}

Builder::Values HeadTile::load_elements(ValueId at, ValueId there) {
  const int width = plan_.load_width;
  const std::vector<std::size_t> used = going_.used_inputs();
  const std::int64_t row = elements_a_row(plan_);
  const ValueId left = b_.min(b_.sub(elements_, at), b_.i64(row));
  const ValueId room = b_.convert(b_.select(there, left, b_.i64(0)), DType::i32);
  const auto load = [&](int element, int count, bool all) {
    const ValueId exist = all ? kNoValue : b_.lt(place_of(element), room);
    const Address from{.base = b_.add(at, b_.i64(element)), .group = 1, .stride = each_};
    return tile_.load(from, count, exist, kNoValue);
  };
  const auto vectors = [&](bool all) {
    Builder::Values values;
    for (int i = 0; i < each_; i += width) {
      const Loaded some = load(i, width, all);
      for (const std::size_t input : used) values.push_back(b_.splat(some.inputs[input]));
    }
    return values;
  };
  if (width == 1) return vectors(false);
  // The last load may reach beyond the inputs' end.
  const ValueId whole = b_.both(there, b_.compute(Op::ge, {left, b_.i64(row)}));
  return b_.branch(
      whole, [&] { return vectors(true); },
      [&] {
        Builder::Values values;
        for (int i = 0; i < each_; i += width) {
          std::vector<Builder::Values> pieces(used.size());
          for (int j = i; j < i + width; ++j) {
            const Loaded some = load(j, 1, false);
            for (std::size_t u = 0; u < used.size(); ++u) pieces[u].push_back(some.inputs[used[u]]);
          }
          for (Builder::Values& piece : pieces) values.push_back(b_.concat(std::move(piece)));
        }
        return values;
      });
}

void HeadTile::expect(ValueId at, ValueId there) {
  marked_ = at;
  there_ = there;
  if (early_) load_condition();
}

void HeadTile::load_condition() {
  const ValueId at = marked_, there = there_;
  const std::int64_t row = elements_a_row(plan_);
  const ValueId left = b_.select(there, b_.sub(elements_, at), b_.i64(row));
  end_ = b_.convert(b_.min(left, b_.i64(row)), DType::i32);
  const ValueId room = b_.select(there, end_, b_.i32(0));
  HeadCondition condition(b_, graph_);
  const auto load = [&](bool masked) {
    Builder::Values values;
    for (int i = 0; i < each_; ++i) {
      condition.begin(b_.add(at, b_.i64(std::int64_t{i} * kWarpWidth)),
                      masked ? exists_in(i, room) : kNoValue);
      for (const ValueId value : condition.load()) values.push_back(b_.splat(value));
    }
    return values;
  };
  const ValueId whole = b_.both(b_.both(there, b_.compute(Op::ge, {left, b_.i64(row)})),
                                b_.compute(Op::ge, {at, b_.i64(condition.farthest())}));
  const Builder::Values values =
      b_.branch(whole, [&] { return load(false); }, [&] { return load(true); });
  const auto each = static_cast<std::ptrdiff_t>(values.size()) / each_;
  rows_.clear();
  for (int i = 0; i < each_; ++i) {
    HeadCondition& own = rows_.emplace_back(b_, graph_);
    own.begin(b_.add(at, b_.i64(std::int64_t{i} * kWarpWidth)), exists_in(i, room));
    own.take({values.begin() + i * each, values.begin() + (i + 1) * each});
  }
}

ValueId HeadTile::exists_in(int row, ValueId room) {
  // Sums of lane and row would stay in registers.
  return b_.lt(b_.lane(), b_.sub(room, b_.i32(row * kWarpWidth)));
}

void HeadTile::mark_heads() {
  if (!early_) load_condition();
  b_.barrier();
  const ValueId one = b_.splat(b_.constant(DType::u8, 1)), zero = b_.constant(DType::u8, 0);
  for (int i = 0; i < each_; ++i)
    b_.shared_store(flags_, {b_.i64(std::int64_t{i} * kWarpWidth)},
                    b_.select(rows_[static_cast<std::size_t>(i)].told(), one, zero));
  b_.barrier();
  // The first element of all, and what is behind the last one.
  const ValueId first_lane = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
  b_.shared_store(flags_, {b_.i64(0)}, one,
                  b_.both(first_lane, b_.compute(Op::eq, {marked_, b_.i64(0)})));
  b_.shared_store(flags_, {b_.convert(end_, DType::i64)}, one,
                  b_.both(first_lane, b_.lt(end_, b_.i32(elements_a_row(plan_)))));
  b_.barrier();
}

std::vector<Loaded> HeadTile::loads_of(const Builder::Values& elements) {
  std::vector<Loaded> loads;
  std::size_t next = 0;
  for (int i = 0; i < each_; i += plan_.load_width) {
    Loaded load{.inputs = Builder::Values(graph_.inputs.size(), kNoValue),
                .width = plan_.load_width};
    for (const std::size_t input : going_.used_inputs()) load.inputs[input] = elements[next++];
    loads.push_back(std::move(load));
  }
  return loads;
}

/// `last_before`: the place of the last head before a lane's elements in the tile; -1: there is
/// none. `heads`: none where there are no heads in the tile.
void HeadTile::give_positions(std::vector<Loaded>& loads, ValueId at, ValueId head_at,
                              const std::vector<ValueId>& heads, ValueId last_before) {
  const ValueId ahead = b_.sub(at, head_at);
  ValueId last = last_before;
  for (std::size_t l = 0; l < loads.size(); ++l) {
    Builder::Values positions;
    for (int j = 0; j < plan_.load_width; ++j) {
      const int element = static_cast<int>(l) * plan_.load_width + j;
      const ValueId place = place_of(element);
      ValueId position = kNoValue;
      if (heads.empty()) {
        position = b_.add(b_.convert(place, DType::i64), ahead);
      } else {
        last = b_.select(heads[static_cast<std::size_t>(element)], place, last);
        const ValueId none = b_.lt(last, b_.i32(0));
        const ValueId within = b_.sub(place, b_.select(none, b_.i32(0), last));
        position = b_.add(b_.convert(within, DType::i64), b_.select(none, ahead, b_.i64(0)));
      }
      positions.push_back(position);
    }
    loads[l].position = b_.concat(std::move(positions));
  }
}

HeadTile::Flags HeadTile::load_flags() {
  const ValueId all = b_.shared_load(flags_, {b_.i64(0)}, each_);
  Flags flags;
  for (int i = 0; i < each_; ++i) {
    const ValueId flag = each_ == 1 ? all : b_.extract(all, i);
    flags.heads.push_back(b_.compute(Op::ne, {flag, b_.constant(DType::u8, 0)}));
    flags.ones.push_back(b_.convert(flag, DType::i32));
  }
  return flags;
}

HeadTile::Carry HeadTile::fold(ValueId at, const Builder::Values& elements, const Carry& before,
                               const Sink& ended) {
  const Flags flags = load_flags();
  ValueId has_head = flags.heads[0];
  for (const ValueId head : flags.heads) has_head = b_.compute(Op::bit_or, {has_head, head});
  return unflatten(b_.branch_as_is(
      b_.any(has_head), [&] { return flatten(fold_heads(at, elements, has_head, before, ended)); },
      [&] {
        Carry after = before;
        std::vector<Loaded> loads = loads_of(elements);
        if (asks_places_) give_positions(loads, at, before.head_at, {}, kNoValue);
        going_.add(loads, after.going);
        return flatten(after);
      }));
}

HeadTile::Carry HeadTile::fold_heads(ValueId at, const Builder::Values& elements, ValueId has_head,
                                     const Carry& before, const Sink& ended) {
  const ValueId last_lane = b_.splat(b_.i32(kWarpWidth - 1));
  const ValueId is_first = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
  const ValueId none = b_.i32(-1);
  // Booleans are not kept: there are more of them than predicates.
  const Flags flags = load_flags();
  ValueId own = b_.i32(0);
  for (const ValueId flag : flags.ones) own = b_.add(own, flag);
  const ValueId sum = sum_so_far(b_, b_.splat(own));
  const ValueId count = b_.first_lane(b_.shuffle_from(sum, last_lane));
  // The last lane up to each one that has a head, and up to the one before it.
  const ValueId nearest = largest_so_far(b_, b_.select(has_head, b_.lane(), none));
  const ValueId earlier = b_.select(is_first, none, b_.shuffle_up(nearest, 1));
  const Lanes lanes{.rank = b_.sub(sum, own),
                    .has_head = has_head,
                    .nearest = b_.compute(Op::max, {nearest, b_.i32(0)}),
                    .open_here = b_.lt(earlier, b_.i32(0))};
  std::vector<Loaded> loads = loads_of(elements);
  if (asks_places_) {
    ValueId last = none;
    for (int i = 0; i < each_; ++i)
      last = b_.select(flags.heads[static_cast<std::size_t>(i)], place_of(i), last);
    const ValueId reached = largest_so_far(b_, b_.splat(last));
    give_positions(loads, at, before.head_at, flags.heads,
                   b_.select(is_first, none, b_.shuffle_up(reached, 1)));
  }
  if (before.head_at != kNoValue) {
    ValueId rank = lanes.rank;
    for (int i = 0; i < each_; ++i) {
      b_.shared_store(heads_at_, {.base = b_.i64(0), .group = 1, .offset = rank}, place_of(i),
                      flags.heads[static_cast<std::size_t>(i)]);
      rank = b_.add(rank, flags.ones[static_cast<std::size_t>(i)]);
    }
  }
  std::vector<Partials> parts;
  for (const Loaded& load : loads) parts.push_back(tile_.fold_elements(load));
  Partials open = going_.settle(before.going);
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) fold_one(f, parts, lanes, open);
  b_.barrier();
  hand_over(at, count, before, ended);
  Carry after{.going = going_.from(std::move(open)), .heads = b_.add(before.heads, count)};
  if (before.head_at != kNoValue) {
    const ValueId last = b_.convert(b_.sub(count, b_.i32(1)), DType::i64);
    const ValueId place = b_.shared_load(heads_at_, {.base = last, .group = 1, .stride = 0});
    after.head_at = b_.add(at, b_.convert(place, DType::i64));
  }
  b_.barrier();
  return after;
}

void HeadTile::fold_one(std::size_t fold, const std::vector<Partials>& loads, const Lanes& lanes,
                        Partials& open) {
  const Flags flags = load_flags();
  const auto slot = [](Builder& b, ValueId rank) {
    return Address{.base = b.i64(0), .group = 1, .offset = rank};
  };
  const int width = plan_.load_width;
  Partial state;
  ValueId rank = lanes.rank;
  for (int i = 0; i < each_; ++i) {
    const ValueId head = flags.heads[static_cast<std::size_t>(i)];
    const Partial element =
        PathGoing::element_of(b_, loads[static_cast<std::size_t>(i / width)][fold], i % width);
    const Partial alone = tile_.lift(fold, element);
    // Where sums of elements may leave their range only states are merged.
    const Partial& added = tile_.is_guarded(fold) ? alone : element;
    const Partial ends = i == 0 ? tile_.identity(fold) : state;
    slots_.store(b_, tile_, fold, slot(b_, rank), ends, head);
    rank = b_.add(rank, flags.ones[static_cast<std::size_t>(i)]);
    state = i == 0 ? alone : going_.choose(head, alone, tile_.merge(fold, state, added));
  }
  const auto merge = [&](const Partial& x, const Partial& y) { return tile_.merge(fold, x, y); };
  state = going_.since_heads(std::move(state), lanes.nearest, merge);
  const ValueId is_first = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
  const Partial before = going_.before_lanes(state, open[fold], is_first, lanes.open_here, merge);
  // What lanes before have of the segment that a lane's first head ends.
  const Partial own = slots_.load(b_, tile_, fold, slot(b_, lanes.rank), lanes.has_head);
  slots_.store(b_, tile_, fold, slot(b_, lanes.rank), tile_.merge(fold, before, own),
               lanes.has_head);
  // There is a head in the tile, so the last lane's state is that since the last one.
  Partial end = state;
  for (ValueId& field : end.fields)
    field = b_.shuffle_from(b_.splat(field), b_.splat(b_.i32(kWarpWidth - 1)));
  open[fold] = end;
}

void HeadTile::hand_over(ValueId at, ValueId count, const Carry& before, const Sink& ended) {
  b_.loop(b_.i32(0), count, b_.i32(kWarpWidth), {},
          [&](ValueId first, const Builder::Values&) -> Builder::Values {
            const ValueId own = b_.add(first, b_.lane());
            const ValueId exist = b_.lt(own, count);
            const Address slot{.base = b_.convert(first, DType::i64)};
            Ended some{.rank = b_.add(before.heads, first), .exist = exist};
            some.states = slots_.load(b_, tile_, slot, exist);
            if (asks_extent_) {
              const ValueId previous = b_.sub(first, b_.i32(1));
              const ValueId end = b_.shared_load(heads_at_, slot, 1, exist);
              const ValueId begin = b_.shared_load(heads_at_, {b_.convert(previous, DType::i64)}, 1,
                                                   b_.both(exist, b_.lt(b_.i32(0), own)));
              const ValueId none = b_.compute(Op::eq, {own, b_.i32(0)});
              const ValueId from =
                  b_.select(none, b_.sub(before.head_at, at), b_.convert(begin, DType::i64));
              some.extent = b_.sub(b_.convert(end, DType::i64), from);
            }
            ended(some);
            return {};
          });
}

}  // namespace chainfold::codegen
