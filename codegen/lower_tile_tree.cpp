#include "chainfold/codegen/lower_tile_tree.hpp"

#include <algorithm>
#include <string>

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
  for (int level = 0; level < kLevels; ++level, tiles *= kRadix) {
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
  ScanTiles tiles(b, program_, graph_, plan_, params_);
  const ValueId warp = b.add(b.mul(b.block(), b.i64(program_.launches.back().warps)),
                             b.convert(b.warp(), DType::i64));
  const ValueId at = b.mul(warp, b.i64(kWarpWidth));
  const ValueId lane = b.convert(b.lane(), DType::i64), counts = tiles.counts();
  const int words = record_layout(state_types()).words;
  const ValueId zeros = b.splat(b.widen(b.constant(DType::i64, 0), 2));  // a word
  for (int level = 0; level < kLevels; ++level) {
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

TileTree::Slots TileTree::slots(Builder& b, ScanTiles& tiles, int level) {
  const ValueId base = b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level));
  const ValueId index =
      b.compute(Op::shr, {tiles.index(), b.i64(std::int64_t{level} * kDigitBits)});
  const ValueId digit =
      level == kLevels - 1 ? index : b.compute(Op::bit_and, {index, b.i64(kRadix - 1)});
  const ValueId own = b.add(base, index);
  if (tiles.origin() == kNoValue) return {.own = own, .group = b.sub(own, digit), .before = digit};
  const ValueId origin =
      b.compute(Op::shr, {tiles.origin(), b.i64(std::int64_t{level} * kDigitBits)});
  const ValueId from = b.compute(Op::max, {b.sub(own, digit), b.add(base, origin)});
  return {.own = own, .group = from, .before = b.sub(own, from)};
}

void TileTree::publish(Builder& b, ScanTiles& tiles, ValueId ticket, const Partials& own) const {
  publish_at(b, tiles.run(), 0, slots(b, tiles, 0).own, ticket, own);
}

void TileTree::publish_at(Builder& b, ScanTile& run, int level, ValueId slot, ValueId ticket,
                          const Partials& states) const {
  b.publish(records_[level], slot, ticket, run.tile().flatten(states));
}

Partials TileTree::fold_slots(Builder& b, ScanTiles& tiles, int level, ValueId first, ValueId count,
                              ValueId ticket, ValueId offset) const {
  ScanTile& run = tiles.run();
  const std::int64_t stride = std::int64_t{1} << (level * kDigitBits);
  // The last tile of a slot's group publishes it.
  const ValueId before_segment = b.sub(ticket, tiles.index());
  const ValueId publisher =
      b.add(before_segment, b.sub(b.mul(b.add(offset, b.i64(1)), b.i64(stride)), b.i64(1)));
  Builder::Values carried = b.await({.flags = records_[level],
                                     .first = first,
                                     .count = count,
                                     .ticket = ticket,
                                     .publisher = publisher,
                                     .stride = b.i64(stride)},
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

Partials TileTree::look_at(Builder& b, ScanTiles& tiles, int level, ValueId ticket) const {
  const Slots at = slots(b, tiles, level);
  const ValueId in_segment =
      b.sub(at.group, b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level)));
  if (level < kLevels - 1)
    return fold_slots(b, tiles, level, at.group, at.before, ticket, in_segment);
  ScanTile& run = tiles.run();
  const Partials start = run.tile().identities();
  const Builder::Values folded =
      b.loop(b.i64(0), at.before, b.i64(kRadix), run.tile().flatten(start),
             [&](ValueId done, const Builder::Values& carried) {
               const ValueId count = b.min(b.i64(kRadix), b.sub(at.before, done));
               const Partials next = fold_slots(b, tiles, level, b.add(at.group, done), count,
                                                ticket, b.add(in_segment, done));
               return run.tile().flatten(run.merge(run.tile().unflatten(carried, true), next));
             });
  return run.tile().unflatten(folded, true);
}

Partials TileTree::before(Builder& b, ScanTiles& tiles, ValueId ticket,
                          const std::function<Partials()>& own, bool publishes) const {
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
          publish_at(b, run, level, slots(b, tiles, level).own, ticket, fold);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  };
  std::vector<Partials> folds;
  if (warps == 1) {
    Partials group = own();
    if (publishes) publish(b, tiles, ticket, group);
    for (int level = 0; level < kLevels; ++level) {
      folds.push_back(look_at(b, tiles, level, ticket));
      if (level + 1 == kLevels) continue;
      group = tiles.join(folds.back(), group);
      publish_group(level + 1, group);
    }
  } else {
    const auto shared = StateArrays::in_shared(program_, graph_, "before", kLevels + 1);
    for (int level = 0; level < kLevels; ++level) {
      b.branch(
          b.compute(Op::eq, {b.warp(), b.i32(level % warps)}),
          [&] {
            if (level > 0) {
              shared.store_one(b, run.tile(), b.i64(level), look_at(b, tiles, level, ticket));
              return Builder::Values{};
            }
            const Partials mine = own();
            if (publishes) publish(b, tiles, ticket, mine);
            const Partials before = look_at(b, tiles, 0, ticket);
            shared.store_one(b, run.tile(), b.i64(0), before);
            const Partials group = tiles.join(before, mine);
            shared.store_one(b, run.tile(), b.i64(kLevels), group);
            publish_group(1, group);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
    }
    b.barrier();
    for (int level = 0; level < kLevels; ++level)
      folds.push_back(shared.load_one(b, run.tile(), b.i64(level)));
    // Higher groups wait for two warps' folds.
    on_first_warp(b, warps, [&] {
      Partials group = shared.load_one(b, run.tile(), b.i64(kLevels));
      for (int level = 2; level < kLevels; ++level) {
        group = tiles.join(folds[static_cast<std::size_t>(level) - 1], group);
        publish_group(level, group);
      }
    });
  }
  Partials before = folds.back();
  for (int level = kLevels - 2; level >= 0; --level)
    before = run.merge(before, folds[static_cast<std::size_t>(level)]);
  return before;
}

}  // namespace chainfold::codegen
