// Heads that a launch finds, as offsets: behind the launches of HeadChunks a third one writes where
// they are.
#include <cstdint>
#include <memory>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/head_chunks.hpp"
#include "chainfold/codegen/lower/fold/head_condition.hpp"
#include "chainfold/codegen/lower/fold/path_bounds.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/lane_scans.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {

/// Elements of a chunk are a multiple of what a trip counts.
constexpr int kChunk = kWarpWidth * HeadChunks::kRows;

class HeadBounds final : public PathBounds {
 public:
  HeadBounds(Program& program, const Graph& graph, int elements)
      : program_(program), graph_(graph), elements_(elements) {
    const SizeExpr n = param_size(program, elements);
    const int length =
        add_size(program, "chunk", max(ceil_div(n, kMostHeadChunks * kChunk), 1) * kChunk);
    count_ = add_size(program, "chunks", ceil_div(n, param_size(program, length)));
    chunks_ = std::make_unique<HeadChunks>(program, graph, elements, length, count_, false, false);
    offsets_ = declare_scratch(program, "offsets", DType::i64, n + 1);
  }

  [[nodiscard]] BoundBuffers buffers() const override {
    return {.begins = offsets_, .ends = offsets_, .shift = 1};
  }
  [[nodiscard]] SizeExpr most_segments() const override { return param_size(program_, elements_); }
  void lower() override {
    chunks_->lower();
    program_.launches.push_back(
        {.name = "write_heads", .grid = max(param_size(program_, count_), 1), .warps = 1});
    lower_write();
  }
  ValueId segments(Builder& b) override { return chunks_->segments(b); }
  ValueId are_right(Builder& b) override { return b.boolean(true); }
  void write_status(Builder& b, int status) override { chunks_->write_status(b, status); }
  ValueId room(Builder& b, std::size_t o) override { return chunks_->room(b, o); }

 private:
  ValueId exists_at(Builder& b, ValueId first) {
    return b.lt(b.add(first, b.convert(b.lane(), DType::i64)), b.param(elements_));
  }

  void lower_write() {
    Builder b(program_);
    HeadCondition condition(b, graph_);
    const HeadChunks::Chunk chunk = chunks_->chunk_of(b);
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    // Of no elements there is no chunk.
    const ValueId before = b.branch_uniform(
        b.lt(chunk.begin, b.param(elements_)), [&] { return chunks_->heads_before(b, b.block()); },
        [&] { return b.i64(0); });
    const ValueId behind =
        b.loop(chunk.begin, chunk.end, b.i64(kWarpWidth), {before},
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
    b.store(offsets_, {behind}, b.param(elements_), b.both(first_lane, is_last));
  }

  Program& program_;
  const Graph& graph_;
  std::unique_ptr<HeadChunks> chunks_;
  int elements_, count_ = 0;  // parameters
  int offsets_ = 0;           // a buffer
};

}  // namespace

std::unique_ptr<PathBounds> declare_heads(Program& program, const Graph& graph, int elements) {
  return std::make_unique<HeadBounds>(program, graph, elements);
}

}  // namespace chainfold::codegen
