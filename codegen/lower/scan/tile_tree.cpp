#include "chainfold/codegen/lower/scan/tile_tree.hpp"

#include <algorithm>
#include <string>

#include "chainfold/codegen/lower/tile/states.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kDigitBits = 5, kRadix = 1 << kDigitBits;
constexpr int kClearWarps = 8;  // at most
constexpr int kRecordAlignment = 16;

/// Slots of a segment at a level: of its groups, the last of which may be short.
ValueId slots_of(Builder& b, ValueId tiles, int level) {
  if (level == 0) return tiles;
  const std::int64_t group = std::int64_t{1} << (level * kDigitBits);
  return b.div(b.add(tiles, b.i64(group - 1)), b.i64(group));
}

/// Where the group of 32 begins in which a slot lies.
ValueId group_begin(Builder& b, ValueId slot) {
  return b.sub(slot, b.compute(Op::bit_and, {slot, b.i64(kRadix - 1)}));
}

std::vector<std::uint8_t> mirrored() {
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l)
    source[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(kWarpWidth - 1 - l);
  return source;
}

}  // namespace

TileTree::TileTree(Program& program, const Graph& graph, const Plan& plan, const TileParams& params)
    : program_(program), graph_(graph), plan_(plan), params_(params) {
  int scratch = 0;
  auto declare = [&](const std::string& name, DType type, const SizeExpr& elements) {
    program.buffers.push_back(
        {name, type, BufferRole::scratch, scratch++, size_of(type), elements});
    return static_cast<int>(program.buffers.size()) - 1;
  };
  counter_ = declare("tickets", DType::i64, 1);
  const std::int64_t record = record_layout(state_types()).elements();
  std::int64_t tiles = 1;  // of a slot
  for (int level = 0; level < kTreeLevels; ++level, tiles *= kRadix) {
    const SizeExpr slots = params.segment_count * ceil_div(params.tiles, tiles);
    records_[level] = declare("published_" + std::to_string(level), DType::i64, slots * record);
    program.buffers.back().alignment = kRecordAlignment;
  }
}

std::vector<DType> TileTree::state_types() const {
  std::vector<DType> types;
  for (const Fold& fold : graph_.folds)
    types.insert(types.end(), fold.state.begin(), fold.state.end());
  return types;
}

void TileTree::lower_clear(const Target& target) {
  const int warps = std::min(kClearWarps, target.max_warps);
  program_.launches.push_back({.name = "clear",
                               .grid = ceil_div(params_.all(), std::int64_t{warps} * kWarpWidth),
                               .warps = warps});
  Builder b(program_);
  ScanTiles tiles(b, graph_, plan_, params_);
  const ValueId warp = b.add(b.mul(b.block(), b.i64(program_.launches.back().warps)),
                             b.convert(b.warp(), DType::i64));
  const ValueId at = b.mul(warp, b.i64(kWarpWidth));
  const ValueId lane = b.convert(b.lane(), DType::i64), counts = tiles.counts();
  const int words = record_layout(state_types()).words;
  const ValueId zeros = b.splat(b.widen(b.constant(DType::i64, 0), 2));  // a word
  for (int level = 0; level < kTreeLevels; ++level) {
    const ValueId slots = b.mul(counts, slots_of(b, tiles.tiles(), level));
    const ValueId all = b.mul(slots, b.i64(words)), first = b.mul(at, b.i64(words));
    for (int w = 0; w < words; ++w) {
      const ValueId word = b.add(first, b.i64(std::int64_t{w} * kWarpWidth));
      b.store(records_[level], {.base = b.mul(word, b.i64(2)), .group = kWarpWidth}, zeros,
              b.lt(lane, b.sub(all, word)));
    }
  }
  const ValueId first = b.compute(Op::eq, {b.add(lane, at), b.i64(0)});
  b.store(counter_, {b.i64(0)}, b.i64(0), first);
}

ValueId TileTree::own_slot(Builder& b, ScanTiles& tiles, int level) {
  const ValueId base = b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level));
  const std::int64_t bits = std::int64_t{level} * kDigitBits;
  return b.add(base, b.compute(Op::shr, {tiles.index(), b.i64(bits)}));
}

int TileTree::near(int level) const { return tree_looks(plan_, level) - 1; }

int TileTree::looks_before(int level) const {
  int looks = 0;
  for (int l = 0; l < level; ++l) looks += tree_looks(plan_, l);
  return looks;
}

ValueId TileTree::end_of(Builder& b, ScanTiles& tiles, int level) const {
  ValueId end = tiles.index();
  for (int l = 0; l < level; ++l) {
    end = b.compute(Op::shr, {end, b.i64(kDigitBits)});
    if (near(l) > 0) end = b.compute(Op::max, {b.i64(0), b.sub(end, b.i64(near(l)))});
  }
  return end;
}

void TileTree::publish(Builder& b, ScanTiles& tiles, ValueId ticket, const Partials& own) const {
  publish_at(b, tiles.run(), 0, own_slot(b, tiles, 0), ticket, own);
}

void TileTree::publish_at(Builder& b, ScanTile& run, int level, ValueId slot, ValueId ticket,
                          const Partials& states, bool helps) const {
  b.publish(records_[level], slot, ticket, run.tile().flatten(states), helps);
}

void TileTree::help(Builder& b, ScanTiles& tiles, ValueId ticket, const Refold& refold) const {
  // So many looks take about as long as a thread's fold and scan of a tile
  // (docs/tuned-values.md#look-ahead). On CPUs that pause for less between two looks they take
  // less.
  constexpr int kLooks = 400;
  auto help_late = [&] {
    const ValueId end = tiles.index();
    const ValueId group = group_begin(b, end);
    const ValueId from =
        b.compute(Op::max, {b.i64(0), b.sub(group, b.i64(std::int64_t{near(0)} * kRadix))});
    const ValueId first = b.add(b.mul(tiles.segment(), tiles.tiles()), from);
    const ValueId count = b.sub(end, from), publisher = b.sub(ticket, count), one = b.i64(1);
    const Overdue look = {.flags = records_[0],
                          .first = first,
                          .count = count,
                          .ticket = ticket,
                          .publisher = publisher,
                          .stride = one,
                          .looks = kLooks,
                          .types = state_types()};
    b.loop(b.i64(0), count, one, {b.overdue(look)}, [&](ValueId, const Builder::Values& late) {
      const ValueId next = b.branch_uniform(
          b.lt(late[0], count),
          [&] {
            const ValueId of = b.add(publisher, late[0]);
            publish_at(b, tiles.run(), 0, b.add(first, late[0]), of, refold(of), true);
            return b.overdue(look);
          },
          [&] { return late[0]; });
      return Builder::Values{next};
    });
    return Builder::Values{};
  };
  b.branch(b.streams(), help_late, [] { return Builder::Values{}; });
}

Partials TileTree::fold_slots(Builder& b, ScanTiles& tiles, int level, ValueId first, ValueId count,
                              ValueId ticket, ValueId offset) const {
  ScanTile& run = tiles.run();
  const std::int64_t stride = std::int64_t{1} << (level * kDigitBits);
  // The last tile of a slot's group publishes it.
  const ValueId of_first = b.sub(ticket, tiles.tickets(tiles.index()));
  const ValueId last = b.sub(b.mul(b.add(offset, b.i64(1)), b.i64(stride)), b.i64(1));
  const ValueId publisher = b.add(of_first, tiles.tickets(last));
  Builder::Values carried = b.await({.flags = records_[level],
                                     .first = first,
                                     .count = count,
                                     .ticket = ticket,
                                     .publisher = publisher,
                                     .stride = tiles.tickets(b.i64(stride))},
                                    state_types());
  const ValueId mask = b.lt(b.convert(b.lane(), DType::i64), count);
  const Builder::Values identities = run.tile().flatten(run.tile().identities());
  for (std::size_t i = 0; i < carried.size(); ++i)
    carried[i] = b.select(mask, carried[i], identities[i]);
  Partials states = run.tile().unflatten(carried);
  for (std::size_t f = 0; f < states.size(); ++f) {
    // Slots follow the scan's direction, and lower lanes are merged as what is first in memory.
    if (!run.reverse() || graph_.folds[f].commutative) continue;
    for (ValueId& field : states[f].fields) field = b.permute(field, mirrored());
  }
  return run.tile().reduce_lanes(std::move(states), 1, kWarpWidth);
}

Partials TileTree::look_at(Builder& b, ScanTiles& tiles, int level, ValueId back,
                           ValueId ticket) const {
  const ValueId base = b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level));
  ValueId end = end_of(b, tiles, level), from = b.i64(0);
  if (level < kTreeLevels - 1) {
    from = group_begin(b, end);
    if (back != kNoValue) {
      from = b.sub(from, b.mul(back, b.i64(kRadix)));
      end = b.add(from, b.i64(kRadix));
    }
  }
  if (tiles.origin() != kNoValue) {
    const std::int64_t bits = std::int64_t{level} * kDigitBits;
    from = b.compute(Op::max, {from, b.compute(Op::shr, {tiles.origin(), b.i64(bits)})});
  } else if (back != kNoValue) {
    from = b.compute(Op::max, {from, b.i64(0)});
  }
  ValueId count = b.sub(end, from);
  // Groups further back may not be there, nor, of heads, what lies before the segment.
  if (plan_.scan.window > 0) count = b.compute(Op::max, {count, b.i64(0)});
  if (level < kTreeLevels - 1)
    return fold_slots(b, tiles, level, b.add(base, from), count, ticket, from);
  ScanTile& run = tiles.run();
  const Partials start = run.tile().identities();
  const Builder::Values folded = b.loop(
      b.i64(0), count, b.i64(kRadix), run.tile().flatten(start),
      [&](ValueId done, const Builder::Values& carried) {
        const ValueId left = b.min(b.i64(kRadix), b.sub(count, done));
        const ValueId first = b.add(from, done);
        const Partials next = fold_slots(b, tiles, level, b.add(base, first), left, ticket, first);
        return run.tile().flatten(run.merge(run.tile().unflatten(carried, true), next));
      });
  return run.tile().unflatten(folded, true);
}

Partials TileTree::before(Builder& b, ScanTiles& tiles, ValueId ticket,
                          const std::function<Partials()>& own, bool publishes,
                          const Refold& refold) const {
  ScanTile& run = tiles.run();
  const int warps = plan_.warps;
  auto digits_are_last = [&](int levels) {  // of the tile's number: the last tile of such a group
    const ValueId low = b.i64((std::int64_t{1} << (levels * kDigitBits)) - 1);
    return b.compute(Op::eq, {b.compute(Op::bit_and, {tiles.index(), low}), low});
  };
  auto publish_group = [&](int level, const Partials& fold) {
    b.branch(
        digits_are_last(level),
        [&] {
          publish_at(b, run, level, own_slot(b, tiles, level), ticket, fold);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  };
  std::vector<Partials> folds;
  auto fold_of = [&](int level, int back) {
    return folds[static_cast<std::size_t>(looks_before(level) + back)];
  };
  // The groups that are looked at one by one lie between the slots of a level and the own group of
  // the level below.
  auto join_at = [&](int level, const Partials& group) {
    Partials before = fold_of(level, 0);
    for (int back = level > 0 ? near(level - 1) : 0; back > 0; --back)
      before = run.merge(before, fold_of(level - 1, back));
    return tiles.join(std::move(before), group);
  };
  if (warps == 1) {
    Partials group = own();
    if (publishes) publish(b, tiles, ticket, group);
    if (refold && plan_.hints.non_temporal_from > 0 && all_rows_are_lines(graph_))
      help(b, tiles, ticket, refold);
    for (int level = 0; level < kTreeLevels; ++level) {
      folds.push_back(look_at(b, tiles, level, kNoValue, ticket));
      if (level + 1 < kTreeLevels) {
        group = join_at(level, group);
        publish_group(level + 1, group);
      }
      for (int back = 1; back <= near(level); ++back)
        folds.push_back(look_at(b, tiles, level, b.i64(back), ticket));
    }
  } else {
    const int looks = looks_before(kTreeLevels);
    const auto shared = StateArrays::in_shared(program_, graph_, "before", looks + 1);
    auto put = [&](ValueId at, const Partials& fold) {
      shared.store_one(b, run.tile(), at, fold);
      return Builder::Values{};
    };
    for (int level = 0; level < kTreeLevels; ++level) {
      const int look = looks_before(level);
      b.branch(
          b.compute(Op::eq, {b.warp(), b.i32(look % warps)}),
          [&] {
            if (level > 0) return put(b.i64(look), look_at(b, tiles, level, kNoValue, ticket));
            const Partials mine = own();
            if (publishes) publish(b, tiles, ticket, mine);
            const Partials before = look_at(b, tiles, 0, kNoValue, ticket);
            put(b.i64(0), before);
            const Partials group = tiles.join(before, mine);
            put(b.i64(looks), group);
            publish_group(1, group);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
      if (near(level) == 0) continue;
      const ValueId warp = b.warp();
      b.branch(
          b.both(b.compute(Op::gt, {warp, b.i32(look)}),
                 b.compute(Op::le, {warp, b.i32(look + near(level))})),
          [&] {
            const ValueId at = b.convert(warp, DType::i64);
            return put(at, look_at(b, tiles, level, b.sub(at, b.i64(look)), ticket));
          },
          [] { return Builder::Values{}; });
    }
    b.barrier();
    for (int look = 0; look < looks; ++look)
      folds.push_back(shared.load_one(b, run.tile(), b.i64(look)));
    on_first_warp(b, warps, [&] {  // higher groups wait for several warps' folds
      Partials group = shared.load_one(b, run.tile(), b.i64(looks));
      for (int level = 2; level < kTreeLevels; ++level) {
        group = join_at(level - 1, group);
        publish_group(level, group);
      }
    });
  }
  Partials before = folds.back();
  for (int level = kTreeLevels - 2; level >= 0; --level) {
    for (int back = near(level); back >= 0; --back)
      before = run.merge(before, fold_of(level, back));
  }
  return before;
}

}  // namespace chainfold::codegen
