// Segments of a multiple of 256, square after square: Reduction256, the work-inefficient and the
// work-efficient Reduction256N ([D] 4.1), and a block a segment ([D] 4.2). The partial sums of a
// block's warps are merged as states.
#include "chainfold/codegen/lower/published/squares.hpp"

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/block.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/rows.hpp"

namespace chainfold::codegen {

namespace {

class SquaresLowering {
 public:
  SquaresLowering(Program& program, Builder& b, const Graph& graph, const Plan& plan)
      : program_(program), b_(b), graph_(graph), plan_(plan), squares_(b, graph, plan) {}

  /// Several segments of one square a warp, all loaded first.
  void reduction256(ValueId exist) {
    TileLowering& tile = squares_.tile();
    const ValueId first = b_.compute(Op::mul, {warp_of_grid(b_, plan_.warps), b_.i64(plan_.rows)});
    std::vector<SquareData> data;
    for (int u = 0; u < plan_.rows; ++u) {
      const ValueId segment = b_.add(first, b_.i64(u));
      const ValueId base = b_.mul(segment, b_.i64(SquareLowering::kSquare));
      data.push_back(squares_.load_run(0, base, plan_.load_width, b_.lt(segment, exist)));
    }
    ValueId mine = kNoValue;
    for (int u = 0; u < plan_.rows; ++u) {
      const SquareSums v = squares_.multiply(data[static_cast<std::size_t>(u)], squares_.none());
      const ValueId sum = squares_.across_quads(squares_.total(v))[0].fields[0];
      const ValueId own = b_.compute(Op::eq, {b_.lane(), b_.i32(u)});
      mine = mine == kNoValue ? sum : b_.select(own, sum, mine);
    }
    const ValueId row = b_.compute(Op::lt, {b_.lane(), b_.i32(plan_.rows)});
    const ValueId left = b_.sub(exist, first);
    const ValueId mask = b_.both(row, b_.lt(b_.convert(b_.lane(), DType::i64), left));
    store_outputs(b_, graph_, tile, {Partial{.fields = {mine}}}, first, extent(), mask);
  }

  /// A warp a segment.
  void warp_a_segment(ValueId exist) {
    const ValueId segment = warp_of_grid(b_, plan_.warps);
    b_.branch(
        b_.lt(segment, exist),
        [&] {
          store(plan_.strategy == Strategy::inefficient256n ? inefficient(segment)
                                                            : efficient(segment),
                segment);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
  }

  /// A block a segment; its warps take turns.
  void block_a_segment() {
    const ValueId segment = b_.block();
    const std::int64_t squares = squares_of(plan_.segment);
    const bool masked = squares % (std::int64_t{plan_.warps} * plan_.depth) != 0;
    TileLowering& tile = squares_.tile();
    const ValueId first = b_.convert(b_.warp(), DType::i64), behind = b_.i64(squares);
    Partials sum = squares_.add_up(first, behind, plan_.warps, masked, loads_of(segment),
                                   [&](const SquareSums& v) { return squares_.total(v); });
    sum = squares_.across_quads(tile.lift(std::move(sum)));
    sum = reduce_block(b_, program_, tile, std::move(sum));
    on_first_warp(b_, program_.launches.back().warps, [&] { store(sum, segment); });
  }

 private:
  /// V = P * A_i + V, finished once.
  Partials efficient(ValueId segment) {
    const ValueId first = b_.i64(0), behind = b_.i64(squares_of(plan_.segment));
    return squares_.across_quads(
        squares_.add_up(first, behind, 1, false, loads_of(segment),
                        [&](const SquareSums& v) { return squares_.total(v); }));
  }

  /// Each square is finished before the next: R = (P * A_i) * P^T + R, or a state that takes each
  /// square's sum.
  Partials inefficient(ValueId segment) {
    const std::int64_t squares = squares_of(plan_.segment);
    const SquareLowering::Load load = loads_of(segment);
    TileLowering& tile = squares_.tile();
    const ValueId first = b_.i64(0), behind = b_.i64(squares);
    if (!rounds_sums(plan_)) {
      return squares_.add_up(first, behind, 1, false, load, [&](const SquareSums& v) {
        Partials sum = squares_.total(v);
        if (squares > 1) sum = tile.lift(std::move(sum));
        return squares_.across_quads(std::move(sum));
      });
    }
    const Builder::Values r = squares_.rounds(
        first, behind, 1, {squares_.zero_fragment()},
        [&](ValueId at, int count, const Builder::Values& carried) -> Builder::Values {
          std::vector<SquareData> data;
          for (int k = 0; k < count; ++k) data.push_back(load(b_.add(at, b_.i64(k)), kNoValue));
          ValueId sum = carried[0];
          for (const SquareData& square : data)
            sum = squares_.second_product(squares_.multiply(square, squares_.none()), sum);
          return {sum};
        });
    return {Partial{.fields = {b_.extract(r[0], 0)}}};
  }

  SquareLowering::Load loads_of(ValueId segment) {
    const ValueId base = b_.mul(segment, b_.i64(plan_.segment));
    return [this, base](ValueId index, ValueId mask) {
      const ValueId at = b_.add(base, b_.mul(index, b_.i64(SquareLowering::kSquare)));
      return squares_.load_run(0, at, plan_.load_width, mask);
    };
  }
  ValueId extent() { return b_.i64(plan_.segment); }
  void store(const Partials& sum, ValueId segment) {
    const ValueId mask = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
    store_outputs(b_, graph_, squares_.tile(), sum, segment, extent(), mask);
  }

  Program& program_;
  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  SquareLowering squares_;
};

}  // namespace

Program lower_published_squares(const Graph& graph, const Plan& plan, const Target& target) {
  int segments = 0;
  Program program = start_program(graph, plan, target, ParamRole::segments, segments);
  const SizeExpr count = SizeExpr::param(segments, "segments");
  const bool block = plan.strategy == Strategy::block256n;
  program.launches.push_back(
      {.name = kernel_name(plan),
       .grid = block ? count : ceil_div(count, std::int64_t{plan.rows} * plan.warps),
       .warps = plan.warps});
  Builder b(program);
  SquaresLowering lowering(program, b, graph, plan);
  switch (plan.strategy) {
    case Strategy::reduction256: lowering.reduction256(b.param(segments)); break;
    case Strategy::block256n: lowering.block_a_segment(); break;
    default: lowering.warp_a_segment(b.param(segments));
  }
  return program;
}

}  // namespace chainfold::codegen
