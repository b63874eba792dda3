// Segments that offsets tell, padded with zeros until they are regular ([D], footnote 4). A warp
// takes sixteen, one a column of a square, as strided Reduction16N takes segments of one length.
// All are as long as the longest of them, in whole squares. Padding is what masked lanes load, so
// nothing is written or read for it. Columns never meet in a product, so neither do their NaNs.
//
// A first launch looks at offsets (path_bounds.hpp). Where one is wrong, `fold_padded` writes no
// output.
#include "chainfold/codegen/lower/published/padded.hpp"

#include <memory>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/fold/segment_bounds.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kRun = SquareLowering::kRun;
/// Lanes that hold a column of half a square, and loads of each.
constexpr int kQuad = 4, kLoads = 4;

class PaddedLowering {
 public:
  PaddedLowering(const Graph& graph, const Plan& plan, const Target& target)
      : graph_(graph),
        plan_(plan),
        program_(start_program(graph, plan, target, ParamRole::elements, elements_)) {
    status_ = declare_status(program_);
    bounds_ = declare_path_bounds(program_, graph, plan, elements_);
  }

  Program lower() {
    bounds_->lower();
    // A launch of no segments still tells what it found.
    const SizeExpr blocks = ceil_div(bounds_->most_segments(), std::int64_t{kRun} * plan_.warps);
    program_.launches.push_back(
        {.name = kernel_name(plan_), .grid = max(blocks, 1), .warps = plan_.warps});
    lower_fold();
    return std::move(program_);
  }

 private:
  /// Of sixteen segments, a lane each: which exist, their begins and lengths.
  struct Group {
    ValueId exist = kNoValue, begins = kNoValue, lengths = kNoValue;
  };
  /// The segment that a lane's column of half a square is.
  struct Column {
    ValueId begin = kNoValue, length = kNoValue;
  };

  void lower_fold() {
    Builder b(program_);
    SquareLowering squares(b, graph_, plan_);
    bounds_->tell(b, status_, plan_.warps);
    const ValueId first = b.mul(warp_of_grid(b, plan_.warps), b.i64(kRun));
    const ValueId right = bounds_->are_right(b);
    b.branch(
        b.both(right, b.lt(first, bounds_->segments(b))),
        [&] {
          const Group group = find_group(b, first);
          store_outputs(b, graph_, squares.tile(), sums_of(b, squares, group), first, group.lengths,
                        group.exist);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  Group find_group(Builder& b, ValueId first) {
    const ValueId segments = bounds_->segments(b);
    SegmentBounds bounds(b, bounds_->buffers(), b.param(elements_), segments);
    const ValueId lane = b.convert(b.lane(), DType::i64);
    const ValueId count = b.min(b.i64(kRun), b.sub(segments, first));
    Group group{.exist = b.lt(lane, count)};
    group.begins = bounds.begins({first}, group.exist);
    group.lengths = b.sub(bounds.ends({first}, group.exist), group.begins);
    return group;
  }

  /// Lane p receives the sum of segment p of the group.
  Partials sums_of(Builder& b, SquareLowering& squares, const Group& group) {
    ValueId longest = group.lengths;
    for (int mask = 1; mask < kRun; mask *= 2)
      longest = b.compute(Op::max, {longest, b.shuffle_xor(longest, mask)});
    const ValueId padded = b.add(b.first_lane(longest), b.i64(kRun - 1));
    const Column left = column_of(b, group, 0), right = column_of(b, group, kRun / 2);
    return squares.add_up(
        b.i64(0), b.div(padded, b.i64(kRun)), 1, false,
        [&](ValueId index, ValueId) -> SquareData {
          const ValueId from = b.mul(index, b.i64(kRun));
          return {load_half(b, left, from), load_half(b, right, from)};
        },
        [&](const SquareSums& v) { return squares.columns({v}); });
  }

  /// Of the lanes' columns in the half of a square that begins with column `first`.
  static Column column_of(Builder& b, const Group& group, int first) {
    const ValueId quad = b.compute(Op::div, {b.lane(), b.i32(kQuad)});
    const ValueId source = b.compute(Op::add, {quad, b.i32(first)});
    return {b.shuffle_from(group.begins, source), b.shuffle_from(group.lengths, source)};
  }

  /// Elements [from, from + 16) of segments side by side, zeros behind their ends.
  static ValueId load_half(Builder& b, const Column& column, ValueId from) {
    const ValueId within = b.convert(b.compute(Op::rem, {b.lane(), b.i32(kQuad)}), DType::i64);
    Builder::Values pieces;
    for (int j = 0; j < kLoads; ++j) {
      const ValueId at = b.add(from, b.i64(std::int64_t{j} * kQuad));
      pieces.push_back(b.load(0, {.base = at, .group = kQuad, .offset = column.begin}, 1,
                              b.lt(within, b.sub(column.length, at))));
    }
    return b.concat(std::move(pieces));
  }

  const Graph& graph_;
  const Plan& plan_;
  int elements_ = 0;  // a parameter
  StatusParams status_{};
  Program program_;
  std::unique_ptr<PathBounds> bounds_;
};

}  // namespace

Program lower_published_padded(const Graph& graph, const Plan& plan, const Target& target) {
  return PaddedLowering(graph, plan, target).lower();
}

}  // namespace chainfold::codegen
