// Segments of a multiple of 16, one a column of a square: Reduction16, strided and coalesced
// Reduction16N ([D] 4.1). Columns never meet in a product, so neither do their NaNs.
#include "chainfold/codegen/lower/published/columns.hpp"

#include <algorithm>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kRun = SquareLowering::kRun, kSquare = SquareLowering::kSquare;

class ColumnsLowering {
 public:
  ColumnsLowering(Builder& b, const Graph& graph, const Plan& plan)
      : b_(b), graph_(graph), plan_(plan), squares_(b, graph, plan) {}

  /// Segments from `first` on, of which `exist` (kNoValue: enough) exist in all.
  void lower(ValueId first, ValueId exist) {
    first_ = first;
    exist_ = exist;
    base_ = b_.mul(first, b_.i64(plan_.segment));
    switch (plan_.strategy) {
      case Strategy::reduction16: return reduction16();
      case Strategy::strided16n: return put(strided(0, plan_.segment), 0, kRun);
      default: return put(coalesced(), 0, kRun);
    }
  }

 private:
  /// Sixteen segments a square, all squares loaded before the first product.
  void reduction16() {
    std::vector<SquareData> data;
    for (int u = 0; u < plan_.rows; ++u) data.push_back(load(u, b_.i64(0)));
    for (int u = 0; u < plan_.rows; u += 2) {
      std::vector<SquareSums> sums;
      for (int v = u; v < std::min(plan_.rows, u + 2); ++v)
        sums.push_back(squares_.multiply(data[static_cast<std::size_t>(v)], squares_.none()));
      put(squares_.columns(sums), u * kRun, static_cast<int>(sums.size()) * kRun);
    }
  }

  /// Elements [from, to) of 16 segments, 16 of each at a time; lane p receives segment p's sum.
  Partials strided(std::int64_t from, std::int64_t to) {
    const ValueId first = b_.i64(from / kRun), behind = b_.i64(to / kRun);
    return squares_.add_up(
        first, behind, 1, false,
        [&](ValueId index, ValueId) { return load(0, b_.mul(index, b_.i64(kRun))); },
        [&](const SquareSums& v) { return squares_.columns({v}); });
  }

  /// One segment after the other in whole squares, then what is left of them side by side.
  Partials coalesced() {
    TileLowering& tile = squares_.tile();
    const std::int64_t whole = plan_.segment / kSquare * kSquare;
    ValueId count = b_.i64(kRun);
    if (exist_ != kNoValue) count = b_.min(count, b_.sub(exist_, first_));
    const ValueId lane = b_.convert(b_.lane(), DType::i64);
    const ValueId none = b_.i64(0), one = b_.i64(1), squares = b_.i64(whole / kSquare);
    const Builder::Values sums =
        b_.loop(none, count, one, tile.flatten({tile.identity(0)}),
                [&](ValueId s, const Builder::Values& carried) {
                  const ValueId base = b_.add(base_, b_.mul(s, b_.i64(plan_.segment)));
                  Partials sum = squares_.add_up(
                      none, squares, 1, false,
                      [&](ValueId index, ValueId) {
                        return squares_.load_run(0, b_.add(base, b_.mul(index, b_.i64(kSquare))),
                                                 plan_.load_width);
                      },
                      [&](const SquareSums& v) { return squares_.total(v); });
                  const Builder::Values fields =
                      tile.flatten(squares_.across_quads(tile.lift(std::move(sum))));
                  const ValueId mine = b_.compute(Op::eq, {lane, s});
                  Builder::Values next;
                  for (std::size_t i = 0; i < fields.size(); ++i)
                    next.push_back(b_.select(mine, fields[i], carried[i]));
                  return next;
                });
    Partials result = tile.unflatten(sums);
    if (whole < plan_.segment) result = tile.merge(result, strided(whole, plan_.segment));
    return result;
  }

  /// Elements [offset, offset + 16) of the u-th sixteen segments.
  SquareData load(int u, ValueId offset) {
    const ValueId first = b_.add(base_, b_.i64(std::int64_t{u} * kRun * plan_.segment));
    const SquareData masks{mask(u, 0), mask(u, kRun / 2)};
    return squares_.load_columns(0, b_.add(first, offset), plan_.segment, plan_.load_width, masks);
  }
  /// Lanes whose column, counted from the square's `column` on, is a segment that exists.
  ValueId mask(int u, int column) {
    if (exist_ == kNoValue) return kNoValue;
    const ValueId left = b_.sub(exist_, b_.add(first_, b_.i64(std::int64_t{u} * kRun + column)));
    return b_.lt(b_.convert(b_.compute(Op::div, {b_.lane(), b_.i32(4)}), DType::i64), left);
  }

  /// Stores the results of `count` segments, lane p's that of segment first + offset + p.
  void put(const Partials& sums, int offset, int count) {
    ValueId mask = kNoValue;
    if (count < kWarpWidth) mask = b_.compute(Op::lt, {b_.lane(), b_.i32(count)});
    const ValueId at = b_.add(first_, b_.i64(offset));
    if (exist_ != kNoValue) {
      const ValueId left = b_.sub(exist_, at);
      mask = b_.both(mask, b_.lt(b_.convert(b_.lane(), DType::i64), left));
    }
    store_outputs(b_, graph_, squares_.tile(), sums, at, b_.i64(plan_.segment), mask);
  }

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  SquareLowering squares_;
  ValueId first_ = kNoValue, exist_ = kNoValue, base_ = kNoValue;
};

}  // namespace

Program lower_published_columns(const Graph& graph, const Plan& plan, const Target& target) {
  int segments = 0;
  Program program = start_program(graph, plan, target, ParamRole::segments, segments);
  const std::int64_t per_warp = std::int64_t{kRun} * plan.rows;
  program.launches.push_back(
      {.name = kernel_name(plan),
       .grid = ceil_div(SizeExpr::param(segments, "segments"), per_warp * plan.warps),
       .warps = plan.warps});
  Builder b(program);
  const ValueId warp = warp_of_grid(b, plan.warps);
  const ValueId first = b.mul(warp, b.i64(per_warp));
  const ValueId exist = b.param(segments);
  ColumnsLowering lowering(b, graph, plan);
  auto body = [&](ValueId segments_that_exist) {
    return [&, segments_that_exist] {
      lowering.lower(first, segments_that_exist);
      return Builder::Values{};
    };
  };
  const ValueId whole = b.compute(Op::le, {b.add(first, b.i64(per_warp)), exist});
  b.branch(whole, body(kNoValue), body(exist));
  return program;
}

}  // namespace chainfold::codegen
