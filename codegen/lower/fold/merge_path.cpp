// lower_merge_path: folds over segments that data decide.
//
// First launches look at offsets, or find heads (path_bounds.hpp). `fold_path` cuts the merge path
// of ends of segments and elements (segment_bounds.hpp) into stretches of equally many items, one a
// warp, which takes tile after tile of it (path_tile.hpp). What begins before a stretch and ends in
// it, and the state of what goes on behind it, go to scratch. `merge_path` has a block a stretch.
// It merges, in their order, the states of all stretches that such a segment lies in. How many
// there are follows from where it begins. Where an offset is wrong no launch writes outputs.
//
// Of scans, `fold_path` finds what goes on behind each stretch and no more. `carry_path` has a
// block a stretch, which merges what its first segment has from the stretches before. A further
// launch, `scan_path`, goes over all stretches once more with that, and writes all outputs.
#include "chainfold/codegen/lower/fold/merge_path.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/fold/path_tile.hpp"
#include "chainfold/codegen/lower/fold/segment_bounds.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/merge_states.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kStoreBytes = 16;  // that a lane stores at once

class MergePathLowering {
 public:
  MergePathLowering(const Graph& graph, const Plan& plan, const Target& target)
      : graph_(graph), plan_(plan), scans_(has_scans(graph)) {
    for (const Node& node : graph.nodes) mirrored_ = mirrored_ || node.reverse;
    program_.name = "merge_path";
    declare_graph(program_, graph, plan, target);
    program_.buffers.push_back(
        {"status", DType::i64, BufferRole::status, 0, size_of(DType::i64), 0});
    status_ = static_cast<int>(program_.buffers.size()) - 1;
    elements_ = add_param(program_, "elements", DType::i64, ParamRole::elements);
    has_status_ = add_param(program_, "has_status", DType::i64, ParamRole::has_status);
    bounds_ = declare_path_bounds(program_, graph, plan, elements_);
    const auto param = [&](int index) { return param_size(program_, index); };
    // Stretches are whole tiles, and as many as there are blocks for.
    const SizeExpr most = bounds_->most_segments();
    const SizeExpr tiles = ceil_div(param(elements_) + most, tile_items(plan)) * min(most, 1);
    const SizeExpr each = max(ceil_div(tiles, plan.parts.wanted), 1);
    length_ = add_size(program_, "stretch", each * tile_items(plan));
    stretches_ =
        add_size(program_, "stretches", ceil_div(tiles * tile_items(plan), param(length_)));
    cut_ = declare_scratch(program_, "cut", DType::i64, param(stretches_));
    open_ = static_cast<int>(program_.buffers.size());
    declare_states(program_, graph, param(stretches_), 1, "open");
    begun_ = static_cast<int>(program_.buffers.size());
    declare_states(program_, graph, param(stretches_), 1, scans_ ? "carried" : "begun");
  }

  Program lower() {
    bounds_->lower();
    program_.launches.push_back({.name = "fold_path",
                                 .grid = param_size(program_, stretches_),
                                 .warps = 1,
                                 .min_blocks = plan_.occupancy});
    lower_stretches(scans_ ? Pass::states : Pass::folds);
    program_.launches.push_back({.name = scans_ ? "carry_path" : "merge_path",
                                 .grid = max(param_size(program_, stretches_), 1),
                                 .warps = plan_.warps});
    lower_merge();
    if (!scans_) return std::move(program_);
    program_.launches.push_back({.name = "scan_path",
                                 .grid = param_size(program_, stretches_),
                                 .warps = 1,
                                 .min_blocks = plan_.occupancy});
    lower_stretches(Pass::scans);
    return std::move(program_);
  }

 private:
  /// What a launch over all stretches computes: folds and what goes on, that alone, or outputs with
  /// what goes on known.
  enum class Pass : std::uint8_t { folds, states, scans };

  SegmentBounds bounds_of(Builder& b, ValueId segments) {
    return {b, bounds_->buffers(), b.param(elements_), segments, mirrored_};
  }
  /// Where a stretch's states are: in the order of memory.
  ValueId place_of(Builder& b, ValueId stretch) {
    if (!mirrored_) return stretch;
    return b.sub(b.sub(b.param(stretches_), b.i64(1)), stretch);
  }

  void lower_stretches(Pass pass) {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId segments = bounds_->segments(b);
    SegmentBounds bounds = bounds_of(b, segments);
    PathTile path(b, program_, tile, graph_, plan_, bounds, bounds_->buffers().pairs(),
                  b.param(elements_), segments, pass == Pass::scans, mirrored_);
    const ValueId right = bounds_->are_right(b);
    bounds.find_path();
    const ValueId diagonal = b.mul(b.block(), b.param(length_));
    const ValueId behind = b.min(b.add(diagonal, b.param(length_)), bounds.items());
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.branch(
        b.both(right, b.lt(diagonal, behind)),
        [&] {
          fold_stretch(b, tile, bounds, path, {segments, diagonal, behind}, pass);
          return Builder::Values{};
        },
        [&] {
          if (pass != Pass::scans) b.store(cut_, {b.block()}, b.i64(-1), first_lane);
          return Builder::Values{};
        });
  }

  /// Items [diagonal, behind), of so many segments in all.
  struct Stretch {
    ValueId segments = kNoValue, diagonal = kNoValue, behind = kNoValue;
  };
  void fold_stretch(Builder& b, TileLowering& tile, SegmentBounds& bounds, PathTile& path,
                    const Stretch& stretch, Pass pass) {
    const ValueId segments = stretch.segments, diagonal = stretch.diagonal;
    const ValueId behind = stretch.behind;
    const ValueId span = bounds.span();
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    const ValueId begun = bounds.search(
        diagonal, b.compute(Op::max, {b.i64(0), b.sub(diagonal, span)}), b.min(diagonal, segments));
    const auto element_of = [&](ValueId place, ValueId segment) {
      return b.add(bounds.first(), b.sub(place, segment));
    };
    const ValueId stretch_begin = element_of(diagonal, begun);
    if (pass != Pass::scans) {
      // Whether a segment that began before goes on here; of folds, whether it ends here.
      const ValueId known = b.min(begun, b.sub(segments, b.i64(1)));
      const ValueId begin = bounds.begin(known), end = bounds.end(known);
      ValueId cut = b.both(b.lt(begun, segments), b.lt(begin, b.min(end, stretch_begin)));
      if (pass == Pass::folds) cut = b.both(cut, b.lt(bounds.place(end, known), behind));
      b.store(cut_, {b.block()}, b.select(cut, begun, b.i64(-1)), first_lane);
    }
    if (plan_.path.apart > 0) {
      const ValueId ended = bounds.search(behind, b.compute(Op::max, {begun, b.sub(behind, span)}),
                                          b.min(behind, segments));
      const ValueId ends = b.sub(ended, begun), elements = b.sub(b.sub(behind, diagonal), ends);
      b.branch(
          b.compute(Op::ge, {elements, b.mul(ends, b.i64(plan_.path.apart))}),
          [&] {
            fold_apart(b, tile, bounds, segments, {begun, ended},
                       {stretch_begin, b.add(stretch_begin, elements)});
            return Builder::Values{};
          },
          [&] {
            fold_tiles(b, tile, bounds, path, stretch, pass, begun, stretch_begin);
            return Builder::Values{};
          });
      return;
    }
    fold_tiles(b, tile, bounds, path, stretch, pass, begun, stretch_begin);
  }

  struct Range {
    ValueId begin = kNoValue, end = kNoValue;
  };
  /// One after the other the segments that end in a stretch, and the one that goes on behind it.
  void fold_apart(Builder& b, TileLowering& tile, SegmentBounds& bounds, ValueId segments,
                  const Range& ends, const Range& elements) {
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.loop(ends.begin, b.add(ends.end, b.i64(1)), b.i64(1), {},
           [&](ValueId segment, const Builder::Values&) -> Builder::Values {
             const ValueId known = b.min(segment, b.sub(segments, b.i64(1)));
             const ValueId begin = bounds.begin(known), end = bounds.end(known);
             const ValueId from = b.compute(Op::max, {begin, elements.begin});
             const ValueId here =
                 b.compute(Op::max, {b.i64(0), b.sub(b.min(end, elements.end), from)});
             // Behind the last segment there is none that goes on.
             const ValueId length = b.select(b.lt(segment, segments), here, b.i64(0));
             const Partials folded = tile.reduce_lanes(
                 tile.lift(tile.fold_range_safely(from, length, begin, kNoValue, b.warp(), 1)), 1,
                 kWarpWidth);
             const ValueId goes_on = b.compute(Op::eq, {segment, ends.end});
             b.branch(
                 goes_on,
                 [&] {
                   states(open_).store_one(b, tile, place_of(b, b.block()), folded);
                   return Builder::Values{};
                 },
                 [&] {
                   put(b, tile,
                       {.first = segment,
                        .real = first_lane,
                        .begin = b.splat(begin),
                        .extent = b.splat(b.sub(end, begin)),
                        .states = folded},
                       segments, elements.begin, Pass::folds);
                   return Builder::Values{};
                 });
             return {};
           });
  }

  /// Tile by tile.
  void fold_tiles(Builder& b, TileLowering& tile, SegmentBounds& bounds, PathTile& path,
                  const Stretch& stretch, Pass pass, ValueId begun, ValueId stretch_begin) {
    const ValueId segments = stretch.segments, diagonal = stretch.diagonal;
    const ValueId behind = stretch.behind;
    const auto element_of = [&](ValueId place, ValueId segment) {
      return b.add(bounds.first(), b.sub(place, segment));
    };
    Partials start = tile.identities();
    if (pass == Pass::scans) {
      const ValueId cut = b.load_uniform(cut_, b.block());
      const ValueId carried = b.splat(b.compute(Op::ge, {cut, b.i64(0)}));
      start = states(begun_).load_one(b, tile, b.block(), carried);
    }
    const std::int64_t items = tile_items(plan_);
    const auto items_from = [&](ValueId at) { return b.min(b.i64(items), b.sub(behind, at)); };
    // The next tile's loads are under way while a tile is folded.
    Builder::Values init = {begun, stretch_begin};
    const Builder::Values fields = path.flatten(path.going_from(std::move(start)));
    const Builder::Values early = path.load_early(begun, stretch_begin, items_from(diagonal));
    init.insert(init.end(), fields.begin(), fields.end());
    init.insert(init.end(), early.begin(), early.end());
    PathTile::Sink ended;
    PathTile::ElementSink scanned;
    if (pass != Pass::states)
      ended = [&](const PathTile::Ended& some) {
        put(b, tile, some, segments, stretch_begin, pass);
      };
    if (pass == Pass::scans)
      scanned = [&](const PathTile::Scanned& some) { put_elements(b, tile, path, some); };
    const auto states_behind = static_cast<std::ptrdiff_t>(2 + fields.size());
    const Builder::Values last = b.loop(
        diagonal, behind, b.i64(items), init, [&](ValueId at, const Builder::Values& carried) {
          const ValueId next = b.add(at, items_from(at));
          const ValueId segment = carried[0];
          const Builder::Values own(carried.begin() + states_behind, carried.end());
          const ValueId next_segment = path.next_segment(segment, at, next, own);
          const PathTile::Span tile_span{.segment = segment,
                                         .element = carried[1],
                                         .next_segment = next_segment,
                                         .next_element = element_of(next, next_segment),
                                         .early = own};
          const Builder::Values following =
              path.load_early(next_segment, tile_span.next_element, items_from(next));
          const PathTile::Going going = path.unflatten_going(
              Builder::Values(carried.begin() + 2, carried.begin() + states_behind));
          const PathTile::Going still = path.fold(tile_span, going, ended, scanned);
          Builder::Values yields = {next_segment, tile_span.next_element};
          const Builder::Values next_fields = path.flatten(still);
          yields.insert(yields.end(), next_fields.begin(), next_fields.end());
          yields.insert(yields.end(), following.begin(), following.end());
          return yields;
        });
    if (pass == Pass::scans) return;
    const PathTile::Going still =
        path.unflatten_going(Builder::Values(last.begin() + 2, last.begin() + states_behind));
    states(open_).store_one(b, tile, place_of(b, b.block()), path.settle(still));
  }

  void put(Builder& b, TileLowering& tile, const PathTile::Ended& ended, ValueId segments,
           ValueId stretch_begin, Pass pass) {
    const std::vector<ValueId> outputs = tile.finish(ended.states, ended.extent);
    const auto store = [&](ValueId mask) {
      Address at{.base = ended.first};
      ValueId row = b.add(ended.first, b.convert(b.lane(), DType::i64));
      if (mirrored_) {
        const ValueId last = b.sub(segments, b.i64(1));
        at = {.base = b.sub(last, ended.first), .group = 1, .stride = -1};
        row = b.sub(last, row);
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] == kNoValue) continue;
        b.store(static_cast<int>(graph_.inputs.size() + i), at, outputs[i],
                b.both(mask, has_room(b, i, row)));
      }
    };
    if (pass == Pass::scans) return store(ended.real);
    const ValueId has_elements = b.lt(b.i64(0), ended.extent);
    const ValueId cut = b.both(b.both(ended.real, has_elements), b.lt(ended.begin, stretch_begin));
    store(b.both(ended.real, b.compute(Op::bit_not, {cut})));
    // At most one segment of a stretch, the first of its tile.
    states(begun_).store(b, tile, {b.block()}, ended.states,
                         b.both(cut, b.compute(Op::eq, {b.lane(), b.i32(0)})));
  }

  /// Where output `o` holds a value for a segment; kNoValue: it holds all.
  ValueId has_room(Builder& b, std::size_t o, ValueId segment) {
    const ValueId room = bounds_->room(b, o);
    return room == kNoValue ? kNoValue : b.lt(segment, room);
  }

  /// Lanes whose elements all have results store them at once, others one by one.
  void put_elements(Builder& b, TileLowering& tile, PathTile& path, const PathTile::Scanned& some) {
    const std::vector<ValueId> outputs =
        tile.finish_elements(*some.load, {.running = some.values}, kNoValue);
    const int width = some.load->width;
    ValueId whole = some.counts[0], any = some.counts[0];
    for (const ValueId counts : some.counts) {
      whole = b.both(whole, counts);
      any = b.compute(Op::bit_or, {any, counts});
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] == kNoValue) continue;
      const auto buffer = static_cast<int>(graph_.inputs.size() + o);
      const ValueId value = b.splat(b.widen(outputs[o], width));
      const int size = size_of(b.type(value).elem);
      const int bytes = std::min(kStoreBytes, std::max(plan_.base_alignment, size));
      const int once = b.program().accesses_anywhere ? width : std::min(width, bytes / size);
      const auto store = [&](int first, int count, ValueId mask) {
        b.store(buffer, path.address_of(b.add(some.at, b.i64(first)), count, some.stride),
                path.in_memory_order(b.extract(value, first, count)), mask);
      };
      for (int first = 0; first < width; first += once) store(first, once, whole);
      if (width == 1) continue;
      const ValueId some_only = b.both(any, b.compute(Op::bit_not, {whole}));
      b.branch(
          b.any(some_only),
          [&] {
            for (int j = 0; j < width; ++j)
              store(j, 1, b.both(some_only, some.counts[static_cast<std::size_t>(j)]));
            return Builder::Values{};
          },
          [] { return Builder::Values{}; });
    }
  }

  void lower_merge() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    tell(b);
    const ValueId exists = b.lt(b.block(), b.param(stretches_));
    b.branch(
        exists,
        [&] {
          const ValueId segment = b.load_uniform(cut_, b.block());
          b.branch(
              b.compute(Op::ge, {segment, b.i64(0)}),
              [&] {
                merge_stretches(b, tile, segment);
                return Builder::Values{};
              },
              [] { return Builder::Values{}; });
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  void merge_stretches(Builder& b, TileLowering& tile, ValueId segment) {
    SegmentBounds bounds = bounds_of(b, bounds_->segments(b));
    bounds.find_path();
    const ValueId begin = bounds.begin(segment), end = bounds.end(segment);
    const ValueId first = b.div(bounds.place(begin, segment), b.param(length_));
    const ValueId count = b.sub(b.block(), first);
    const ValueId from = mirrored_ ? b.sub(b.param(stretches_), b.block()) : first;
    Partials all = merge_states(b, program_, tile, states(open_), from, count, tile.identities());
    if (scans_) {
      on_first_warp(b, plan_.warps, [&] { states(begun_).store_one(b, tile, b.block(), all); });
      return;
    }
    on_first_warp(b, plan_.warps, [&] {
      all = tile.merge(all, states(begun_).load_one(b, tile, b.block()));
      const std::vector<ValueId> outputs = tile.finish(all, b.sub(end, begin));
      const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
      for (std::size_t i = 0; i < outputs.size(); ++i)
        b.store(static_cast<int>(graph_.inputs.size() + i), {segment}, outputs[i],
                b.both(first_lane, has_room(b, i, segment)));
    });
  }

  /// Block 0 writes the launch's status.
  void tell(Builder& b) {
    const ValueId first_block = b.compute(Op::eq, {b.block(), b.i64(0)});
    b.branch(
        b.both(first_block, b.compute(Op::ne, {b.param(has_status_), b.i64(0)})),
        [&] {
          on_first_warp(b, plan_.warps, [&] { bounds_->tell(b, status_); });
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  static StateArrays states(int first) { return {StateArrays::Memory::global, first}; }

  Program program_;
  const Graph& graph_;
  const Plan& plan_;
  bool scans_, mirrored_ = false;
  std::unique_ptr<PathBounds> bounds_;
  int elements_ = 0, has_status_ = 0;                // parameters
  int length_ = 0, stretches_ = 0;                   // sizes
  int status_ = 0, cut_ = 0, open_ = 0, begun_ = 0;  // buffers
};

}  // namespace

Program lower_merge_path(const Graph& graph, const Plan& plan, const Target& target) {
  return MergePathLowering(graph, plan, target).lower();
}

}  // namespace chainfold::codegen
