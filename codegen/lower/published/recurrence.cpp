// The whole input in launches, each of which leaves one value of `chain` squares: V = P * A + V for
// each, then V * P^T ([C] III, [N] 5.1). Values between launches are of the inputs' type, as they
// have to enter the next product. The number of launches is that of 2^40 elements; those behind the
// first that leaves one value pass it on.
#include "chainfold/codegen/lower/published/recurrence.hpp"

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

Program lower_published_recurrence(const Graph& graph, const Plan& plan, const Target& target) {
  constexpr int kWidest = 8, kAligned = 16;
  int elements = 0;
  Program program = start_program(graph, plan, target, ParamRole::elements, elements);
  const DType type = mma_table()[static_cast<std::size_t>(plan.folds[0].mma_row)].input;
  const std::int64_t each = std::int64_t{SquareLowering::kSquare} * plan.published.chain;
  const auto first_scratch = static_cast<int>(graph.inputs.size() + graph.outputs.size());
  const int launches = recurrence_launches(plan.published.chain);
  SizeExpr left = SizeExpr::param(elements, "elements");
  for (int i = 0; i + 1 < launches; ++i) {
    left = ceil_div(left, each);
    program.buffers.push_back(
        {"sums_" + std::to_string(i), type, BufferRole::scratch, i, kAligned, left});
  }
  program.launches.reserve(static_cast<std::size_t>(launches));
  left = SizeExpr::param(elements, "elements");
  for (int i = 0; i < launches; ++i) {
    const bool last = i + 1 == launches;
    left = ceil_div(left, each);
    program.launches.push_back({.name = kernel_name(plan) + "_" + std::to_string(i),
                                .grid = last ? SizeExpr(1) : ceil_div(left, plan.warps),
                                .warps = last ? 1 : plan.warps});
    Builder b(program);
    SquareLowering squares(b, graph, plan);
    ValueId count = b.param(elements);
    for (int k = 0; k < i; ++k)
      count = b.compute(Op::div, {b.add(count, b.i64(each - 1)), b.i64(each)});
    const int from = i == 0 ? 0 : first_scratch + i - 1;
    const int width = i == 0 ? plan.load_width : kWidest;
    const ValueId warp = warp_of_grid(b, program.launches.back().warps);
    const ValueId begin = b.mul(warp, b.i64(each));
    auto chain_of_squares = [&](bool whole) {
      std::vector<SquareData> data;
      for (int k = 0; k < plan.published.chain; ++k) {
        const ValueId at = b.add(begin, b.i64(std::int64_t{k} * SquareLowering::kSquare));
        data.push_back(whole ? squares.load_run(from, at, width)
                             : squares.load_ragged(from, at, count));
      }
      return squares.total(squares.chain(data, 0, data.size()))[0].fields;
    };
    const ValueId whole = b.compute(Op::le, {b.add(begin, b.i64(each)), count});
    const ValueId sum = b.branch(
        whole, [&] { return chain_of_squares(true); }, [&] { return chain_of_squares(false); })[0];
    const ValueId first_lane = b.compute(Op::eq, {b.lane(), b.i32(0)});
    if (last) {
      const ValueId place = b.i64(0), extent = b.param(elements);
      store_outputs(b, graph, squares.tile(), {Partial{.fields = {sum}}}, place, extent,
                    first_lane);
    } else {
      const ValueId mask = b.both(first_lane, b.lt(begin, count));
      b.store(first_scratch + i, {warp}, b.convert(sum, type), mask);
    }
  }
  return program;
}

}  // namespace chainfold::codegen
