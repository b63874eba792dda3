// Heads that a launch finds: three launches turn them into offsets. The first counts those of each
// chunk of elements, the second says how many come before each chunk, and the third writes where
// they are.
#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/head_condition.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of elements that a warp has under way.
constexpr int kHeadRows = 4;

class HeadBounds final : public PathBounds {
 public:
  HeadBounds(Program& program, const Graph& graph, int elements)
      : program_(program), graph_(graph), elements_(elements) {
    for (std::size_t o = 0; o < graph.outputs.size(); ++o)
      rooms_.push_back(add_param(program, "room_" + std::to_string(o), DType::i64, ParamRole::room,
                                 static_cast<int>(o)));
    const SizeExpr n = param_size(program, elements);
    constexpr int kRow = kWarpWidth * kHeadRows;
    length_ = add_size(program, "chunk", max(ceil_div(n, kMostHeadChunks * kRow), 1) * kRow);
    chunks_ = add_size(program, "chunks", ceil_div(n, param_size(program, length_)));
    counts_ = declare_scratch(program, "heads_of", DType::i64, param_size(program, chunks_));
    before_ = declare_scratch(program, "heads_before", DType::i64, param_size(program, chunks_));
    total_ = declare_scratch(program, "segments", DType::i64, 1);
    offsets_ = declare_scratch(program, "offsets", DType::i64, n + 1);
  }

  [[nodiscard]] BoundBuffers buffers() const override {
    return {.begins = offsets_, .ends = offsets_, .shift = 1};
  }
  [[nodiscard]] SizeExpr most_segments() const override { return param_size(program_, elements_); }
  void lower() override {
    program_.launches.push_back(
        {.name = "count_heads", .grid = param_size(program_, chunks_), .warps = 1});
    lower_count();
    program_.launches.push_back({.name = "place_heads", .grid = 1, .warps = 1});
    lower_place();
    program_.launches.push_back(
        {.name = "write_heads", .grid = param_size(program_, chunks_), .warps = 1});
    lower_write();
  }
  ValueId segments(Builder& b) override { return b.load_uniform(total_, b.i64(0)); }
  ValueId are_right(Builder& b) override { return b.boolean(true); }
  void write_status(Builder& b, int status) override {
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    b.store(status, {b.i64(0)}, b.i64(-1), first_lane);
    b.store(status, {b.i64(1)}, segments(b), first_lane);
  }
  ValueId room(Builder& b, std::size_t o) override { return b.param(rooms_[o]); }

 private:
  struct Chunk {
    ValueId begin = kNoValue, end = kNoValue;
  };
  Chunk chunk_of(Builder& b) {
    const ValueId begin = b.mul(b.block(), b.param(length_));
    return {begin, b.min(b.add(begin, b.param(length_)), b.param(elements_))};
  }
  ValueId exists_at(Builder& b, ValueId first) {
    return b.lt(b.add(first, b.convert(b.lane(), DType::i64)), b.param(elements_));
  }

  void lower_count() {
    Builder b(program_);
    HeadCondition condition(b, graph_);
    const Chunk chunk = chunk_of(b);
    const ValueId count =
        b.loop(chunk.begin, chunk.end, b.i64(kWarpWidth * kHeadRows), {b.i64(0)},
               [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
                 ValueId sum = carried[0];
                 for (int i = 0; i < kHeadRows; ++i) {
                   const ValueId first = b.add(at, b.i64(std::int64_t{i} * kWarpWidth));
                   const ValueId heads = condition.heads(first, exists_at(b, first));
                   sum = b.add(sum, b.convert(b.count(heads), DType::i64));
                 }
                 return {sum};
               })[0];
    b.store(counts_, {b.block()}, count, b.compute(Op::eq, {b.lane(), b.i32(0)}));
  }

  void lower_place() {
    Builder b(program_);
    const ValueId chunks = b.param(chunks_), lane = b.lane();
    const ValueId first_lane = b.compute(Op::eq, {lane, b.i32(0)});
    const ValueId total =
        b.loop(b.i64(0), chunks, b.i64(kWarpWidth), {b.splat(b.i64(0))},
               [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
                 const ValueId exists = b.lt(b.convert(lane, DType::i64), b.sub(chunks, at));
                 const ValueId own = b.load(counts_, {at}, 1, exists);
                 const ValueId sum = sum_so_far(b, own);
                 b.store(before_, {at}, b.add(carried[0], b.sub(sum, own)), exists);
                 const ValueId last = b.splat(b.i32(kWarpWidth - 1));
                 return {b.add(carried[0], b.shuffle_from(sum, last))};
               })[0];
    b.store(total_, {b.i64(0)}, total, first_lane);
    // Behind the last segment.
    b.store(offsets_, {.base = b.param(elements_)}, b.param(elements_), first_lane);
  }

  static ValueId sum_so_far(Builder& b, ValueId value) {
    const DType type = b.type(value).elem;
    for (int distance = 1; distance < kWarpWidth; distance *= 2) {
      const ValueId reaches = b.compute(Op::ge, {b.lane(), b.i32(distance)});
      value = b.add(value, b.select(reaches, b.shuffle_up(value, distance), b.constant(type, 0)));
    }
    return value;
  }

  void lower_write() {
    Builder b(program_);
    HeadCondition condition(b, graph_);
    const Chunk chunk = chunk_of(b);
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    const ValueId behind =
        b.loop(chunk.begin, chunk.end, b.i64(kWarpWidth), {b.load_uniform(before_, b.block())},
               [&](ValueId at, const Builder::Values& carried) -> Builder::Values {
                 const ValueId heads = condition.heads(at, exists_at(b, at));
                 const ValueId one = b.select(heads, b.i32(1), b.i32(0));
                 const ValueId place = b.sub(sum_so_far(b, one), one);
                 b.store(offsets_, {.base = carried[0], .group = 1, .offset = place},
                         b.add(at, b.convert(b.lane(), DType::i64)), heads);
                 return {b.add(carried[0], b.convert(b.count(heads), DType::i64))};
               })[0];
    // The last segment ends with the elements.
    const ValueId is_last = b.compute(Op::eq, {chunk.end, b.param(elements_)});
    const ValueId fewer = b.lt(behind, b.param(elements_));
    b.store(offsets_, {behind}, b.param(elements_), b.both(b.both(first_lane, is_last), fewer));
  }

  Program& program_;
  const Graph& graph_;
  std::vector<int> rooms_;
  int elements_, length_ = 0, chunks_ = 0;                 // parameters
  int counts_ = 0, before_ = 0, total_ = 0, offsets_ = 0;  // buffers
};

}  // namespace

std::unique_ptr<PathBounds> declare_heads(Program& program, const Graph& graph, int elements) {
  return std::make_unique<HeadBounds>(program, graph, elements);
}

}  // namespace chainfold::codegen
