// lower_merge_path: folds over segments that data decide.
//
// First launches look at offsets, or find heads (path_bounds.hpp). `fold_path` cuts the merge path
// of ends of segments and elements (segment_bounds.hpp) into stretches of equally many items, one a
// warp, which takes tile after tile of it (path_tile.hpp) or, where lanes are elements of vectors,
// segment after segment (path_walk.hpp). What begins before a stretch and ends in it, and the state
// of what goes on behind it, go to scratch. `merge_path` has a block a stretch. It merges, in their
// order, the states of all stretches that such a segment lies in. How many there are follows from
// where it begins. Where an offset is wrong no launch writes outputs.
//
// Of scans, `fold_path` folds what goes on behind each stretch and no more. `carry_path` has a
// block a stretch, which merges what its first segment has from the stretches before. A further
// launch, `scan_path`, goes over all stretches with that, and writes all outputs.
#include "chainfold/codegen/lower/fold/merge_path.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/fold/path_outputs.hpp"
#include "chainfold/codegen/lower/fold/path_tile.hpp"
#include "chainfold/codegen/lower/fold/path_walk.hpp"
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

class MergePathLowering {
 public:
  MergePathLowering(const Graph& graph, const Plan& plan, const Target& target)
      : graph_(graph), plan_(plan), scans_(has_scans(graph)) {
    mirrored_ = scans_backward(graph);
    program_.name = "merge_path";
    declare_graph(program_, graph, plan, target);
    elements_ = add_param(program_, "elements", DType::i64, ParamRole::elements);
    status_ = declare_status(program_);
    bounds_ = declare_path_bounds(program_, graph, plan, elements_);
    const auto param = [&](int index) { return param_size(program_, index); };
    // Stretches are whole tiles, and as many as there are blocks for.
    const SizeExpr most = bounds_->most_segments();
    const SizeExpr tiles = ceil_div(param(elements_) + most, tile_items(plan)) * min(most, 1);
    const SizeExpr each =
        min(max(ceil_div(tiles, plan.parts.wanted), 1), kMostItems / tile_items(plan));
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

  /// What launches over stretches are made of.
  struct Parts {
    Builder& b;
    TileLowering& tile;
    SegmentBounds& bounds;
    PathOutputs& outputs;
    ValueId segments;
  };
  /// Items [diagonal, behind), with ends [begun, ended) and elements [first, last) among them.
  struct Stretch {
    ValueId diagonal = kNoValue, behind = kNoValue;
    ValueId begun = kNoValue, ended = kNoValue, first = kNoValue, last = kNoValue;
  };

  void lower_stretches(Pass pass) {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    const ValueId segments = bounds_->segments(b);
    SegmentBounds bounds = bounds_of(b, segments);
    PathOutputs outputs(b, tile, graph_, plan_, *bounds_, segments, mirrored_);
    const Parts parts{b, tile, bounds, outputs, segments};
    const bool tiles = pass != Pass::states && plan_.path.apart == 0;
    std::optional<PathTile> path;
    if (tiles)
      path.emplace(b, program_, tile, graph_, plan_, bounds, bounds_->buffers().pairs(),
                   b.param(elements_), segments, pass == Pass::scans, mirrored_);
    const ValueId right = bounds_->are_right(b);
    bounds.find_path();
    const ValueId diagonal = b.mul(b.block(), b.param(length_));
    const ValueId behind = b.min(b.add(diagonal, b.param(length_)), bounds.items());
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.branch(
        b.both(right, b.lt(diagonal, behind)),
        [&] {
          const Stretch stretch = find_stretch(parts, diagonal, behind, !tiles);
          if (pass != Pass::scans) tell_cut(parts, stretch, pass);
          if (pass == Pass::states) {
            keep_open(parts, stretch);
          } else if (tiles) {
            fold_tiles(parts, *path, stretch, pass);
          } else {
            walk(parts, stretch, pass);
          }
          return Builder::Values{};
        },
        [&] {
          if (pass != Pass::scans) b.store(cut_, {b.block()}, b.i64(-1), first_lane);
          return Builder::Values{};
        });
  }

  Stretch find_stretch(const Parts& parts, ValueId diagonal, ValueId behind, bool whole) {
    Builder& b = parts.b;
    SegmentBounds& bounds = parts.bounds;
    const auto ends_before = [&](ValueId item, ValueId least) {
      const ValueId few = b.compute(Op::max, {least, b.sub(item, bounds.span())});
      return bounds.search(item, few, b.min(item, parts.segments));
    };
    Stretch stretch{.diagonal = diagonal, .behind = behind};
    stretch.begun = ends_before(diagonal, b.i64(0));
    stretch.first = b.add(bounds.first(), b.sub(diagonal, stretch.begun));
    if (!whole) return stretch;
    stretch.ended = ends_before(behind, stretch.begun);
    stretch.last = b.add(bounds.first(), b.sub(behind, stretch.ended));
    return stretch;
  }

  /// Whether a segment that began before a stretch goes on in it; of folds, whether it ends there.
  void tell_cut(const Parts& parts, const Stretch& stretch, Pass pass) {
    Builder& b = parts.b;
    const ValueId known = b.min(stretch.begun, b.sub(parts.segments, b.i64(1)));
    const ValueId begin = parts.bounds.begin(known), end = parts.bounds.end(known);
    ValueId cut =
        b.both(b.lt(stretch.begun, parts.segments), b.lt(begin, b.min(end, stretch.first)));
    if (pass == Pass::folds)
      cut = b.both(cut, b.lt(parts.bounds.place(end, known), stretch.behind));
    // By one lane: a uniform store waits for the warp, and costs registers on sm_120.
    b.store(cut_, {b.block()}, b.select(cut, stretch.begun, b.i64(-1)),
            b.compute(Op::eq, {b.lane(), b.i32(0)}));
  }

  PathWalk walk_of(const Parts& parts) {
    return {parts.b,        parts.tile, graph_, plan_, parts.bounds, parts.b.param(elements_),
            parts.segments, mirrored_};
  }

  /// What a stretch has of the segment that goes on behind it.
  void keep_open(const Parts& parts, const Stretch& stretch) {
    PathWalk walk = walk_of(parts);
    const PathWalk::Piece piece = walk.last_piece(stretch.ended, stretch.first, stretch.last);
    states(open_).store_one(parts.b, parts.tile, place_of(parts.b, parts.b.block()),
                            walk.fold_by_lanes(piece));
  }

  /// One after the other the segments that end in a stretch, and the one that goes on behind it.
  void walk(const Parts& parts, const Stretch& stretch, Pass pass) {
    Builder& b = parts.b;
    PathWalk walk = walk_of(parts);
    Partials start;
    if (pass == Pass::scans)
      start = states(begun_).load_uniform(b, parts.tile, b.block(), is_carried(b));
    walk.each_piece(
        stretch.begun, stretch.ended, stretch.first, stretch.last,
        [&](const PathWalk::Piece& piece) {
          const ValueId goes_on = b.compute(Op::eq, {piece.segment, stretch.ended});
          Partials folded;
          if (pass == Pass::scans) {
            const ValueId is_first = b.compute(Op::eq, {piece.segment, stretch.begun});
            Partials before = parts.tile.identities();
            for (std::size_t f = 0; f < before.size(); ++f)
              for (std::size_t i = 0; i < before[f].fields.size(); ++i)
                before[f].fields[i] = b.select(is_first, start[f].fields[i], before[f].fields[i]);
            folded = walk.scan(
                piece, before,
                [&](ValueId at, const Loaded& element, std::vector<ValueId> running) {
                  parts.outputs.put_element(at, element, std::move(running), piece.extent(b));
                });
          } else {
            folded = walk.fold(piece);
          }
          b.branch(
              goes_on,
              [&] {
                if (pass == Pass::folds) states(open_).store_one(b, parts.tile, b.block(), folded);
                return Builder::Values{};
              },
              [&] {
                put_piece(parts, stretch, piece, folded, pass);
                return Builder::Values{};
              });
        });
  }

  /// Of scans, whether the stretch's first segment has something from the stretches before.
  ValueId is_carried(Builder& b) {
    const ValueId cut = b.load_uniform(cut_, b.block());
    return b.compute(Op::ge, {cut, b.i64(0)});
  }

  /// A segment that ends in the stretch.
  void put_piece(const Parts& parts, const Stretch& stretch, const PathWalk::Piece& piece,
                 const Partials& folded, Pass pass) {
    Builder& b = parts.b;
    const auto put = [&] {
      parts.outputs.put_one(piece.segment, folded, piece.extent(b));
      return Builder::Values{};
    };
    if (pass == Pass::scans) {
      put();
      return;
    }
    const ValueId cut = b.lt(piece.begin, b.min(piece.end, stretch.first));
    b.branch(
        cut,
        [&] {
          states(begun_).store_one(b, parts.tile, b.block(), folded);
          return Builder::Values{};
        },
        put);
  }

  /// Tile by tile.
  void fold_tiles(const Parts& parts, PathTile& path, const Stretch& stretch, Pass pass) {
    Builder& b = parts.b;
    TileLowering& tile = parts.tile;
    Partials start = tile.identities();
    if (pass == Pass::scans) {
      const ValueId carried = b.splat(is_carried(b));
      start = states(begun_).load_one(b, tile, b.block(), carried);
    }
    path.begin(stretch.begun, stretch.first);
    const ValueId items = b.i32(static_cast<std::int32_t>(tile_items(plan_)));
    const ValueId all = b.convert(b.sub(stretch.behind, stretch.diagonal), DType::i32);
    const auto items_from = [&](ValueId at) { return b.min(items, b.sub(all, at)); };
    // The next tile's loads are under way while a tile is folded.
    Builder::Values init = {b.i32(0), path.first_element()};
    const Builder::Values fields = path.going().flatten(path.going().from(std::move(start)));
    const Builder::Values early =
        path.load_early(b.i32(0), path.first_element(), items_from(b.i32(0)));
    init.insert(init.end(), fields.begin(), fields.end());
    init.insert(init.end(), early.begin(), early.end());
    const PathTile::Sink ended = [&](const PathTile::Ended& some) {
      put_segments(parts, some, pass);
    };
    PathTile::ElementSink scanned;
    if (pass == Pass::scans)
      scanned = [&](const PathTile::Scanned& some) { parts.outputs.put_elements(path, some); };
    const auto states_behind = static_cast<std::ptrdiff_t>(2 + fields.size());
    const Builder::Values last =
        b.loop(b.i32(0), all, items, init, [&](ValueId at, const Builder::Values& carried) {
          const ValueId next = b.add(at, items_from(at));
          const ValueId segment = carried[0];
          const Builder::Values own(carried.begin() + states_behind, carried.end());
          const Builder::Values near = path.near_early(own);
          const ValueId next_segment = path.next_segment(segment, at, next, near);
          const ValueId next_element = b.add(path.first_element(), b.sub(next, next_segment));
          const PathTile::Span tile_span{.segment = segment,
                                         .element = carried[1],
                                         .next_segment = next_segment,
                                         .next_element = next_element,
                                         .early = own,
                                         .near = near};
          const Builder::Values following =
              path.load_early(next_segment, tile_span.next_element, items_from(next));
          const PathTile::Going going = path.going().unflatten(
              Builder::Values(carried.begin() + 2, carried.begin() + states_behind));
          const PathTile::Going still = path.fold(tile_span, going, ended, scanned);
          Builder::Values yields = {next_segment, tile_span.next_element};
          const Builder::Values next_fields = path.going().flatten(still);
          yields.insert(yields.end(), next_fields.begin(), next_fields.end());
          yields.insert(yields.end(), following.begin(), following.end());
          return yields;
        });
    if (pass == Pass::scans) return;
    const PathTile::Going still =
        path.going().unflatten(Builder::Values(last.begin() + 2, last.begin() + states_behind));
    states(open_).store_one(b, tile, b.block(), path.going().settle(still));
  }

  /// Segments of a tile that end in it. Those that began before the stretch wait for others.
  void put_segments(const Parts& parts, const PathTile::Ended& ended, Pass pass) {
    Builder& b = parts.b;
    if (pass == Pass::scans)
      return parts.outputs.put(ended.first, ended.states, ended.extent, ended.real);
    parts.outputs.put(ended.first, ended.states, ended.extent,
                      b.both(ended.real, b.compute(Op::bit_not, {ended.cut})));
    // At most one segment of a stretch, the first of its tile.
    states(begun_).store(b, parts.tile, {b.block()}, ended.states,
                         b.both(ended.cut, b.compute(Op::eq, {b.lane(), b.i32(0)})));
  }

  void lower_merge() {
    Builder b(program_);
    TileLowering tile(b, graph_, plan_);
    bounds_->tell(b, status_, plan_.warps);
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
    const ValueId segments = bounds_->segments(b);
    SegmentBounds bounds = bounds_of(b, segments);
    bounds.find_path();
    const ValueId begin = bounds.begin(segment), end = bounds.end(segment);
    const ValueId first = b.div(bounds.place(begin, segment), b.param(length_));
    const ValueId count = b.sub(b.block(), first);
    const ValueId from = mirrored_ ? b.sub(b.param(stretches_), b.block()) : first;
    const Partials all =
        merge_states(b, program_, tile, states(open_), from, count, tile.identities());
    if (scans_) {
      on_first_warp(b, plan_.warps, [&] { states(begun_).store_one(b, tile, b.block(), all); });
      return;
    }
    on_first_warp(b, plan_.warps, [&] {
      const Partials folded = tile.merge(all, states(begun_).load_one(b, tile, b.block()));
      PathOutputs outputs(b, tile, graph_, plan_, *bounds_, segments, mirrored_);
      outputs.put_one(segment, folded, b.sub(end, begin));
    });
  }

  static StateArrays states(int first) { return {StateArrays::Memory::global, first}; }

  Program program_;
  const Graph& graph_;
  const Plan& plan_;
  bool scans_, mirrored_ = false;
  std::unique_ptr<PathBounds> bounds_;
  int elements_ = 0;  // a parameter
  StatusParams status_{};
  int length_ = 0, stretches_ = 0;      // sizes
  int cut_ = 0, open_ = 0, begun_ = 0;  // buffers
};

}  // namespace

Program lower_merge_path(const Graph& graph, const Plan& plan, const Target& target) {
  return MergePathLowering(graph, plan, target).lower();
}

}  // namespace chainfold::codegen
