// Offsets that a launch is given: a first launch looks at all of them. Each block of it leaves a
// word, the place of the first wrong one of its share, or none.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {

/// Offsets that a lane has under way, and warps of a block: enough for memory to be busy.
constexpr int kCheckLoads = 8, kCheckWarps = 8;
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

class OffsetBounds final : public PathBounds {
 public:
  OffsetBounds(Program& program, const Graph& graph, const Plan& plan, int elements)
      : program_(program),
        // Blocks whose lanes are elements of vectors are one warp.
        warps_(plan.vector_lanes ? 1 : kCheckWarps),
        elements_(elements) {
    bounds_ = declare_bounds(program, graph);
    segments_ = add_param(program, "segments", DType::i64, ParamRole::segments);
    const int per_block = kWarpWidth * kCheckLoads * warps_;
    checks_ = add_size(program, "checks",
                       min(max(ceil_div(most_segments(), per_block), 1), kMostCheckWords));
    checked_ = declare_scratch(program, "wrong", DType::i64, param_size(program, checks_));
  }

  [[nodiscard]] BoundBuffers buffers() const override { return bounds_; }
  [[nodiscard]] SizeExpr most_segments() const override { return param_size(program_, segments_); }
  void lower() override {
    program_.launches.push_back(
        {.name = "check_bounds", .grid = param_size(program_, checks_), .warps = warps_});
    lower_check();
  }
  ValueId segments(Builder& b) override { return b.param(segments_); }
  ValueId are_right(Builder& b) override {
    return b.all(b.compute(Op::eq, {first_wrong(b), b.i64(kNothing)}));
  }
  void write_status(Builder& b, int status) override {
    const ValueId wrong = first_wrong(b);
    const ValueId none = b.compute(Op::eq, {wrong, b.i64(kNothing)});
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.store(status, {b.i64(0)}, b.select(none, b.i64(-1), wrong), first_lane);
    b.store(status, {b.i64(1)}, b.param(segments_), first_lane);
  }
  ValueId room(Builder&, std::size_t) override { return kNoValue; }

 private:
  void lower_check() {
    Builder b(program_);
    SegmentBounds bounds(b, bounds_, b.param(elements_), b.param(segments_));
    const ValueId segments = b.param(segments_), elements = b.param(elements_);
    const ValueId zero = b.i64(0), nothing = b.i64(kNothing);
    const ValueId warp = b.add(b.mul(b.block(), b.i64(warps_)), b.convert(b.warp(), DType::i64));
    constexpr int kTrip = kWarpWidth * kCheckLoads;
    const ValueId stride = b.mul(b.param(checks_), b.i64(std::int64_t{kTrip} * warps_));
    const auto either = [&](ValueId x, ValueId y) { return b.compute(Op::bit_or, {x, y}); };
    ValueId wrong = b.loop(b.mul(warp, b.i64(kTrip)), segments, stride, {b.splat(nothing)},
                           [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
                             ValueId first = carried[0];
                             for (int i = 0; i < kCheckLoads; ++i) {
                               const ValueId base = b.add(at, b.i64(std::int64_t{i} * kWarpWidth));
                               const ValueId segment = b.add(base, b.convert(b.lane(), DType::i64));
                               const ValueId exists = b.lt(segment, segments);
                               const ValueId begin = bounds.raw_begins({base}, exists);
                               const ValueId end = bounds.raw_ends({base}, exists);
                               const ValueId bad_begin = b.lt(begin, zero);
                               ValueId bad_end = either(b.lt(end, begin), b.lt(elements, end));
                               ValueId place = segment;
                               if (bounds_.pairs()) {
                                 const ValueId next = b.add(base, b.i64(1));
                                 const ValueId has_next = b.lt(b.add(segment, b.i64(1)), segments);
                                 const ValueId next_begin = bounds.raw_begins({next}, has_next);
                                 bad_end = either(bad_end, b.both(has_next, b.lt(next_begin, end)));
                               } else {
                                 place = b.select(bad_begin, segment, b.add(segment, b.i64(1)));
                               }
                               const ValueId bad = b.both(exists, either(bad_begin, bad_end));
                               first = b.min(first, b.select(bad, place, nothing));
                             }
                             return {first};
                           })[0];
    if (!bounds_.pairs()) {  // one offset is there even of no segment
      const ValueId lone = b.convert(b.load_uniform(bounds_.begins, zero), DType::i64);
      const ValueId none = b.compute(Op::eq, {segments, zero});
      const ValueId bad = either(b.lt(lone, zero), b.lt(elements, lone));
      wrong = b.select(b.both(none, bad), zero, wrong);
    }
    wrong = first_of_lanes(b, b.splat(wrong));
    if (warps_ > 1) {
      auto& shared = b.shared();
      shared.push_back({"wrong", DType::i64, warps_});
      const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
      b.shared_store(0, {b.convert(b.warp(), DType::i64)}, wrong, first_lane);
      b.barrier();
      const ValueId there = b.compute(Op::lt, {b.lane(), b.i32(warps_)});
      wrong = first_of_lanes(b, b.select(there, b.shared_load(0, {zero}, 1, there), nothing));
    }
    on_first_warp(b, warps_, [&] {
      b.store(checked_, {b.block()}, wrong, b.compute(Op::eq, {b.lane(), b.i32(0)}));
    });
  }

  static ValueId first_of_lanes(Builder& b, ValueId places) {
    for (int mask = 1; mask < kWarpWidth; mask *= 2)
      places = b.min(places, b.shuffle_xor(places, mask));
    return places;
  }

  /// The place of the first wrong offset, in all lanes.
  ValueId first_wrong(Builder& b) {
    ValueId first = b.splat(b.i64(kNothing));
    const ValueId count = b.param(checks_);
    for (int at = 0; at < kMostCheckWords; at += kWarpWidth) {
      const ValueId exists = b.lt(b.add(b.convert(b.lane(), DType::i64), b.i64(at)), count);
      const ValueId word = b.load(checked_, {b.i64(at)}, 1, exists);
      first = b.min(first, b.select(exists, word, b.i64(kNothing)));
    }
    return first_of_lanes(b, first);
  }

  Program& program_;
  int warps_;
  BoundBuffers bounds_;
  int elements_, segments_ = 0, checks_ = 0, checked_ = 0;
};

}  // namespace

std::unique_ptr<PathBounds> declare_offsets(Program& program, const Graph& graph, const Plan& plan,
                                            int elements) {
  return std::make_unique<OffsetBounds>(program, graph, plan, elements);
}

}  // namespace chainfold::codegen
