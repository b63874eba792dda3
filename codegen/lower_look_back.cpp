// lower_look_back: scans of segments of several tiles, or of everything, in one launch that reads
// its input once.
//
// Blocks take tiles by tickets. A tile publishes the fold of its elements; 32 tiles in a row make a
// group, whose last tile publishes the group's fold one level up, and 32 groups one of the next.
// What comes before a tile is, by the digits of its number to the base 32, at most 31 folds of each
// level (of the last level all there are): the tree depends on the tile alone, so that sums have
// the same bits however the blocks happen to run, and no tile waits for a chain of others. Levels
// are looked at by a warp each.
#include <algorithm>
#include <string>
#include <utility>

#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_scan_tiles.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kLevels = 3, kDigitBits = 5, kRadix = 1 << kDigitBits;
constexpr int kClearWarps = 8;  // at most

class LookBack {
 public:
  LookBack(Program& program, const Graph& graph, const Plan& plan)
      : program_(program),
        graph_(graph),
        plan_(plan),
        params_(declare_tiles(program, graph, plan)) {
    int scratch = 0;
    auto declare = [&](const std::string& name, DType type, const SizeExpr& elements) {
      program.buffers.push_back(
          {name, type, BufferRole::scratch, scratch++, size_of(type), elements});
      return static_cast<int>(program.buffers.size()) - 1;
    };
    counter_ = declare("tickets", DType::i64, 1);
    std::int64_t tiles = 1;  // of a slot
    for (int level = 0; level < kLevels; ++level, tiles *= kRadix) {
      const SizeExpr slots = params_.segment_count * ceil_div(params_.tiles, tiles);
      const std::string name = std::to_string(level);
      flags_[level] = declare("published_" + name, DType::i32, slots);
      states_[level] = static_cast<int>(program.buffers.size());
      int field = 0;
      for (const Fold& fold : graph.folds) {
        for (const DType type : fold.state)
          declare("state_" + name + "_" + std::to_string(field++), type, slots);
      }
    }
  }

  /// No slot is published, no ticket taken.
  void lower_clear() {
    Builder b(program_);
    const ValueId warp = b.add(b.mul(b.block(), b.i64(program_.launches.back().warps)),
                               b.convert(b.warp(), DType::i64));
    const ValueId at = b.mul(warp, b.i64(kWarpWidth));
    const ValueId lane = b.convert(b.lane(), DType::i64), segments = b.param(params_.segments);
    ScanTiles tiles(b, program_, graph_, plan_, params_);
    for (int level = 0; level < kLevels; ++level) {
      const ValueId slots = b.mul(segments, slots_of(b, tiles.tiles(), level));
      b.store(flags_[level], {at}, b.constant(DType::i32, 0), b.lt(lane, b.sub(slots, at)));
    }
    const ValueId first = b.compute(Op::eq, {b.add(lane, at), b.i64(0)});
    b.store(counter_, {b.i64(0)}, b.i64(0), first);
  }

  void lower_scan() {
    Builder b(program_);
    ScanTiles tiles(b, program_, graph_, plan_, params_);
    ScanTile& run = tiles.run();
    const ValueId ticket = b.ticket(counter_);
    tiles.place(ticket);
    const Partials own = tiles.total();
    ScanBlock block(b, program_, graph_, run);
    block.share(own);
    const Partials in_block = block.before_warp();
    const Partials before = merge(run, tiles.carried_in(), look_back(b, tiles, block, ticket));
    tiles.scan(merge(run, before, in_block), std::vector<ValueId>(graph_.folds.size(), kNoValue));
    tiles.store_folds([&] { return merge(run, before, block.all()); });
  }

  [[nodiscard]] const TileParams& params() const { return params_; }

 private:
  /// Slots of a segment at a level: of its groups, the last of which may be short.
  static ValueId slots_of(Builder& b, ValueId tiles, int level) {
    if (level == 0) return tiles;
    const std::int64_t group = std::int64_t{1} << (level * kDigitBits);
    return b.div(b.add(tiles, b.i64(group - 1)), b.i64(group));
  }

  Partials merge(ScanTile& run, const Partials& earlier, const Partials& later) {
    Partials merged;
    for (std::size_t f = 0; f < graph_.folds.size(); ++f)
      merged.push_back(run.row().merge(f, earlier[f], later[f], run.reverse()));
    return merged;
  }

  /// A slot's number, and that of the first one of its group at this level.
  struct Slots {
    ValueId own = kNoValue, group = kNoValue;
    ValueId before = kNoValue;  ///< slots of the group before the own one
  };
  Slots slots(Builder& b, ScanTiles& tiles, int level) {
    const ValueId base = b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level));
    const ValueId index =
        b.compute(Op::shr, {tiles.index(), b.i64(std::int64_t{level} * kDigitBits)});
    const ValueId digit =
        level == kLevels - 1 ? index : b.compute(Op::bit_and, {index, b.i64(kRadix - 1)});
    const ValueId own = b.add(base, index);
    return {.own = own, .group = b.sub(own, digit), .before = digit};
  }

  void publish(Builder& b, ScanTile& run, int level, ValueId slot, ValueId ticket,
               const Partials& states) {
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    int buffer = states_[level];
    for (const ValueId field : run.tile().flatten(states))
      b.store(buffer++, {slot}, field, first_lane);
    b.publish(flags_[level], slot, ticket);
  }

  /// The fold of `count` (i64, at most 32) slots from `first` on, the j-th of which counts from
  /// `offset` slots behind the group's beginning.
  Partials fold_slots(Builder& b, ScanTiles& tiles, int level, ValueId first, ValueId count,
                      ValueId ticket, ValueId offset) {
    ScanTile& run = tiles.run();
    const std::int64_t stride = std::int64_t{1} << (level * kDigitBits);
    // The last tile of a slot's group publishes it.
    const ValueId before_segment = b.sub(ticket, tiles.index());
    const ValueId publisher =
        b.add(before_segment, b.sub(b.mul(b.add(offset, b.i64(1)), b.i64(stride)), b.i64(1)));
    b.await({.flags = flags_[level],
             .first = first,
             .count = count,
             .ticket = ticket,
             .publisher = publisher,
             .stride = b.i64(stride)});
    const ValueId mask = b.lt(b.convert(b.lane(), DType::i64), count);
    Partials states;
    int buffer = states_[level];
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      Partial state = run.tile().identity(f);
      for (ValueId& field : state.fields) {
        field = b.select(mask, b.load(buffer++, {first}, 1, mask), field);
        // Slots follow the scan's direction, and lower lanes are merged as what is first in memory.
        if (run.reverse() && !graph_.folds[f].commutative) field = b.permute(field, mirrored());
      }
      states.push_back(std::move(state));
    }
    return run.tile().reduce_lanes(std::move(states), 1, kWarpWidth);
  }

  static std::vector<std::uint8_t> mirrored() {
    std::vector<std::uint8_t> source(kWarpWidth);
    for (int l = 0; l < kWarpWidth; ++l)
      source[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(kWarpWidth - 1 - l);
    return source;
  }

  /// The fold of the slots before the tile's own at one level, within its group there.
  Partials look_at(Builder& b, ScanTiles& tiles, int level, ValueId ticket) {
    const Slots at = slots(b, tiles, level);
    const ValueId in_segment =
        b.sub(at.group, b.mul(tiles.segment(), slots_of(b, tiles.tiles(), level)));
    if (level < kLevels - 1)
      return fold_slots(b, tiles, level, at.group, at.before, ticket, in_segment);
    ScanTile& run = tiles.run();
    Partials start;
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) start.push_back(run.tile().identity(f));
    const Builder::Values folded =
        b.loop(b.i64(0), at.before, b.i64(kRadix), run.tile().flatten(start),
               [&](ValueId done, const Builder::Values& carried) {
                 const ValueId count = b.min(b.i64(kRadix), b.sub(at.before, done));
                 const Partials next = fold_slots(b, tiles, level, b.add(at.group, done), count,
                                                  ticket, b.add(in_segment, done));
                 return run.tile().flatten(merge(run, run.tile().unflatten(carried, true), next));
               });
    return run.tile().unflatten(folded, true);
  }

  /// The fold of everything before the tile. The first warp publishes the tile's own.
  Partials look_back(Builder& b, ScanTiles& tiles, ScanBlock& block, ValueId ticket) {
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
            publish(b, run, level, slots(b, tiles, level).own, ticket, fold);
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
    };
    std::vector<Partials> folds;
    if (warps == 1) {
      Partials group = block.all();
      publish(b, run, 0, slots(b, tiles, 0).own, ticket, group);
      for (int level = 0; level < kLevels; ++level) {
        folds.push_back(look_at(b, tiles, level, ticket));
        if (level + 1 == kLevels) continue;
        group = merge(run, folds.back(), group);
        publish_group(level + 1, group);
      }
    } else {
      const int arrays = declare_shared_states(program_, graph_, "before", kLevels + 1);
      for (int level = 0; level < kLevels; ++level) {
        b.branch(
            b.compute(Op::eq, {b.warp(), b.i32(level % warps)}),
            [&] {
              if (level > 0) {
                store_shared(b, run.tile(), arrays, b.i64(level), look_at(b, tiles, level, ticket));
                return Builder::Values{};
              }
              const Partials own = block.all();
              publish(b, run, 0, slots(b, tiles, 0).own, ticket, own);
              const Partials before = look_at(b, tiles, 0, ticket);
              store_shared(b, run.tile(), arrays, b.i64(0), before);
              const Partials group = merge(run, before, own);
              store_shared(b, run.tile(), arrays, b.i64(kLevels), group);
              publish_group(1, group);
              return Builder::Values{};
            },
            [] { return Builder::Values{}; });
      }
      b.barrier();
      for (int level = 0; level < kLevels; ++level)
        folds.push_back(load_shared(b, run.tile(), graph_, arrays, b.i64(level)));
      // Higher groups wait for two warps' folds.
      on_first_warp(b, warps, [&] {
        Partials group = load_shared(b, run.tile(), graph_, arrays, b.i64(kLevels));
        for (int level = 2; level < kLevels; ++level) {
          group = merge(run, folds[static_cast<std::size_t>(level) - 1], group);
          publish_group(level, group);
        }
      });
    }
    Partials before = folds.back();
    for (int level = kLevels - 2; level >= 0; --level)
      before = merge(run, before, folds[static_cast<std::size_t>(level)]);
    return before;
  }

  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  TileParams params_;
  int counter_ = 0;
  int flags_[kLevels] = {}, states_[kLevels] = {};  // the first buffer of each level
};

}  // namespace

Program lower_look_back(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = "scan_look_back";
  program.in_place = true;
  declare_graph(program, graph, plan);
  LookBack lowering(program, graph, plan);
  const TileParams params = lowering.params();
  const int clear_warps = std::min(kClearWarps, target.max_warps);
  program.launches.reserve(2);
  program.launches.push_back(
      {.name = "clear",
       .grid = ceil_div(params.all(), std::int64_t{clear_warps} * kWarpWidth),
       .warps = clear_warps});
  lowering.lower_clear();
  program.launches.push_back({.name = "scan_look_back",
                              .grid = params.all(),
                              .warps = plan.warps,
                              .min_blocks = plan.resident,
                              .overlaps = target.overlaps,
                              .streams = params.streams(plan)});
  lowering.lower_scan();
  return program;
}

}  // namespace chainfold::codegen
