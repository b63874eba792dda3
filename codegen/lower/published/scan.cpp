// The published scans ([D] 5). Warps scan segments of 16, 16 N, 256 and 256 N, blocks scan others
// of 256 N, three launches scan the whole input.
#include "chainfold/codegen/lower/published/scan.hpp"

#include <array>
#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/declare.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"

namespace chainfold::codegen {

namespace {

using Square = ScanSquares::Square;
using Values = ScanSquares::Values;
using Scanned = ScanSquares::Scanned;
constexpr int kRun = ScanSquares::kRun, kSquare = ScanSquares::kSquare,
              kPieces = ScanSquares::kPieces;

class PublishedScan {
 public:
  PublishedScan(Builder& b, Program& program, const Graph& graph, const Plan& plan)
      : b_(b), plan_(plan), squares_(b, program, graph, plan), tile_(squares_.tile()) {}

  /// Segments of 16, one a row.
  void scan16(ValueId exist) {
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kRun * plan_.rows));
    std::vector<Square> squares;
    for (int u = 0; u < plan_.rows; ++u)
      squares.push_back(squares_.load(element(first, u), kRun, rows_that_exist(first, u, exist)));
    for (int u = 0; u < plan_.rows; ++u) {
      const Square& square = squares[at(u)];
      squares_.store(square,
                     squares_.values_of(squares_.rows_scanned(square, {kNoValue, kNoValue})),
                     element(first, u), kRun, extent());
    }
  }

  /// Segments of 16 N, one a row: sixteen elements of each at a time.
  void scan16n(ValueId exist) {
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kRun));
    const std::array<ValueId, 2> masks = rows_that_exist(first, 0, exist);
    const bool chained = plan_.published.chain == 0;
    const Partial none = tile_.identity(0);
    Builder::Values start;
    for (int r = 0; r < 2; ++r) {
      if (chained) start.push_back(b_.splat(b_.constant(DType::f32, 0)));
      for (const ValueId field : chained ? Builder::Values{} : tile_.flatten({none}))
        start.push_back(field);
    }
    b_.loop(b_.i64(0), b_.i64(plan_.segment / kRun), b_.i64(1), start,
            [&](ValueId i, const Builder::Values& s) {
              const ValueId at_element =
                  b_.add(b_.mul(first, b_.i64(plan_.segment)), b_.mul(i, b_.i64(kRun)));
              const Square square = squares_.load(at_element, plan_.segment, masks);
              std::array<ValueId, 2> c{kNoValue, kNoValue};
              if (chained) c = {s[0], s[1]};
              Values values = squares_.values_of(squares_.rows_scanned(square, c));
              const std::array<ValueId, 2> last = squares_.last_column(values);
              Builder::Values next{last.begin(), last.end()};
              if (!chained) {
                next.clear();
                const std::size_t fields = s.size() / 2;
                for (std::size_t r = 0; r < 2; ++r) {
                  const Partial state = tile_.unflatten(
                      {s.begin() + static_cast<std::ptrdiff_t>(r * fields),
                       s.begin() + static_cast<std::ptrdiff_t>((r + 1) * fields)})[0];
                  const ValueId sum = tile_.collapse(0, state).fields[0];
                  for (std::size_t p = r; p < kPieces; p += 2) values[p] = b_.add(sum, values[p]);
                  for (const ValueId field :
                       tile_.flatten({tile_.merge(0, state, Partial{.fields = {last[r]}})}))
                    next.push_back(field);
                }
              }
              squares_.store(square, values, at_element, plan_.segment, extent());
              return next;
            });
  }

  /// Segments of 256, `rows` a warp.
  void scan256(ValueId exist) {
    squares_.declare_squares(plan_.rows);
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(plan_.rows));
    std::vector<Square> squares;
    for (int u = 0; u < plan_.rows; ++u) {
      const ValueId mask = b_.splat(b_.lt(b_.add(first, b_.i64(u)), exist));
      squares.push_back(
          squares_.load(b_.mul(b_.add(first, b_.i64(u)), b_.i64(kSquare)), kRun, {mask, mask}));
      squares_.share(squares.back(), u);
    }
    b_.barrier();
    for (int u = 0; u < plan_.rows; ++u) {
      const Scanned result = squares_.scanned(squares[at(u)], u, {kNoValue, kNoValue});
      squares_.store(squares[at(u)], result.values,
                     b_.mul(b_.add(first, b_.i64(u)), b_.i64(kSquare)), kRun, extent());
    }
  }

  /// Segments of 256 N, a warp each: S is the last value of the square before.
  void scan256n(ValueId exist) {
    squares_.declare_squares(1);
    const ValueId segment = warp_of_grid(b_, plan_.warps);
    const ValueId mask = b_.splat(b_.lt(segment, exist));
    const bool chained = plan_.published.chain == 0;
    const Builder::Values start = chained ? Builder::Values{b_.splat(b_.constant(DType::f32, 0))}
                                          : Builder::Values(tile_.flatten({tile_.identity(0)}));
    b_.loop(b_.i64(0), b_.i64(squares_of(plan_.segment)), b_.i64(1), start,
            [&](ValueId i, const Builder::Values& s) {
              const ValueId first =
                  b_.add(b_.mul(segment, b_.i64(plan_.segment)), b_.mul(i, b_.i64(kSquare)));
              const Square square = squares_.load(first, kRun, {mask, mask});
              squares_.share(square, 0);
              b_.barrier();
              std::array<ValueId, 2> c{kNoValue, kNoValue};
              if (chained) c = {s[0], s[0]};
              Scanned result = squares_.scanned(square, 0, c);
              Builder::Values next;
              if (chained) {
                next = {squares_.last_value(b_.extract(result.values[3], 1))};
              } else {
                const Partial state = tile_.unflatten(s)[0];
                next = tile_.flatten({tile_.merge(0, state, squares_.state_of(result))});
                squares_.add(result.values, state);
              }
              squares_.store(square, result.values, first, kRun, extent());
              b_.barrier();  // before the next square takes its place
              return next;
            });
  }

  /// A block a segment of 256 N.
  void block256n() {
    squares_.declare_squares(1);
    const StateArrays partials = squares_.declare_partials();
    const std::int64_t squares = squares_of(plan_.segment);
    const std::int64_t rounds = (squares + plan_.warps - 1) / plan_.warps;
    const ValueId base = b_.mul(b_.block(), b_.i64(plan_.segment));
    b_.loop(b_.i64(0), b_.i64(rounds), b_.i64(1), tile_.flatten({tile_.identity(0)}),
            [&](ValueId i, const Builder::Values& s) {
              const ValueId number =
                  b_.add(b_.mul(i, b_.i64(plan_.warps)), b_.convert(b_.warp(), DType::i64));
              const ValueId mask = b_.splat(b_.lt(number, b_.i64(squares)));
              const Partial carry = tile_.unflatten(s)[0];
              const ValueId first = b_.add(base, b_.mul(number, b_.i64(kSquare)));
              const Square square = squares_.load(first, kRun, {mask, mask});
              squares_.share(square, 0);
              b_.barrier();
              Scanned result = squares_.scanned(square, 0, {kNoValue, kNoValue});
              const auto [before, all] = squares_.meet(result, partials);
              squares_.add(result.values, tile_.merge(0, carry, before));
              squares_.store(square, result.values, first, kRun, extent());
              b_.barrier();
              return Builder::Values(tile_.flatten({tile_.merge(0, carry, all)}));
            });
  }

  // The whole input in three launches. The states of blocks are in scratch.

  /// A square a warp: their scans within the block go to the output, the block's fold to scratch.
  void grid_squares(ValueId elements, const StateArrays& states) {
    squares_.declare_squares(1);
    const StateArrays partials = squares_.declare_partials();
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kSquare));
    const ValueId left = b_.sub(elements, first);
    const Square square = squares_.load_ragged(first, left);
    Scanned result = squares_.scanned(square, 0, {kNoValue, kNoValue});
    const auto [before, all] = squares_.meet(result, partials);
    squares_.add(result.values, before);
    squares_.store_ragged(result.values, first, left);
    on_first_warp(b_, plan_.warps,
                  [&, all = all] { states.store_one(b_, tile_, b_.block(), {all}); });
  }
  /// One warp: each block's fold becomes that of the blocks before it.
  void grid_states(ValueId blocks, const StateArrays& states) {
    const Partial none = tile_.identity(0);
    b_.loop(b_.i64(0), blocks, b_.i64(kWarpWidth), tile_.flatten({none}),
            [&](ValueId i, const Builder::Values& s) {
              const Partial carry = tile_.unflatten(s)[0];
              const ValueId mask = b_.lt(b_.convert(b_.lane(), DType::i64), b_.sub(blocks, i));
              Partial state = states.load(b_, tile_, {i}, mask)[0];
              for (int distance = 1; distance < kWarpWidth; distance *= 2) {
                const Partial merged = tile_.merge(0, up(state, distance), state);
                const ValueId reaches = b_.compute(Op::ge, {b_.lane(), b_.i32(distance)});
                for (std::size_t f = 0; f < state.fields.size(); ++f)
                  state.fields[f] = b_.select(reaches, merged.fields[f], state.fields[f]);
              }
              const Partial before =
                  tile_.keep_where(0, up(state, 1), b_.compute(Op::ge, {b_.lane(), b_.i32(1)}));
              states.store(b_, tile_, {i}, {tile_.merge(0, carry, before)}, mask);
              for (ValueId& field : state.fields) field = squares_.last_value(field);
              return Builder::Values(tile_.flatten({tile_.merge(0, carry, state)}));
            });
  }
  /// Adds to every block's values what comes before it.
  void grid_add(ValueId elements, const StateArrays& states) {
    const Partial before = states.load_one(b_, tile_, b_.block())[0];
    const ValueId sum = tile_.collapse(0, before).fields[0];
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kSquare));
    const ValueId lane = b_.convert(b_.lane(), DType::i64);
    for (int j = 0; j < kSquare; j += kWarpWidth) {
      const ValueId here = b_.add(first, b_.i64(j));
      const ValueId mask = b_.lt(lane, b_.sub(elements, here));
      b_.store(1, {here}, b_.add(sum, b_.load(1, {here}, 1, mask)), mask);
    }
  }

 private:
  Partial up(Partial state, int distance) {
    for (ValueId& field : state.fields) field = b_.shuffle_up(b_.splat(field), distance);
    return state;
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  ValueId extent() { return b_.i64(plan_.segment); }
  ValueId element(ValueId first, int u) {
    return b_.mul(b_.add(first, b_.i64(std::int64_t{u} * kRun)), b_.i64(kRun));
  }
  /// Of the u-th sixteen segments from `first` on.
  std::array<ValueId, 2> rows_that_exist(ValueId first, int u, ValueId exist) {
    const ValueId left = b_.sub(exist, b_.add(first, b_.i64(std::int64_t{u} * kRun)));
    const ValueId g = b_.convert(b_.div(b_.lane(), b_.i32(4)), DType::i64);
    return {b_.lt(g, left), b_.lt(b_.add(g, b_.i64(8)), left)};
  }

  Builder& b_;
  const Plan& plan_;
  ScanSquares squares_;
  TileLowering& tile_;
};

Program lower_grid(const Graph& graph, const Plan& plan, const Target& target) {
  Program program;
  program.name = published_scan(plan.strategy)->name;
  declare_graph(program, graph, plan, target);
  const int elements = add_param(program, "elements", DType::i64, ParamRole::elements);
  const SizeExpr blocks = ceil_div(SizeExpr::param(elements, "elements"), plan.scan.tile);
  const StateArrays states(StateArrays::Memory::global, static_cast<int>(program.buffers.size()));
  declare_states(program, graph, blocks, 1);
  auto launch = [&](const char* name, const SizeExpr& grid, int warps, auto&& body) {
    program.launches.push_back({.name = name, .grid = grid, .warps = warps});
    Builder b(program);
    PublishedScan scan(b, program, graph, plan);
    body(b, scan, b.param(elements));
  };
  program.launches.reserve(3);
  launch("scan_squares", blocks, plan.warps,
         [&](Builder&, PublishedScan& scan, ValueId count) { scan.grid_squares(count, states); });
  launch("scan_partials", 1, 1, [&](Builder& b, PublishedScan& scan, ValueId count) {
    const ValueId tile = b.i64(plan.scan.tile);
    scan.grid_states(b.div(b.add(count, b.i64(plan.scan.tile - 1)), tile), states);
  });
  launch("add_partials", blocks, plan.warps,
         [&](Builder&, PublishedScan& scan, ValueId count) { scan.grid_add(count, states); });
  return program;
}

}  // namespace

Program lower_published_scan(const Graph& graph, const Plan& plan, const Target& target) {
  if (plan.strategy == Strategy::scan_grid256n) return lower_grid(graph, plan, target);
  Program program;
  program.name = published_scan(plan.strategy)->name;
  declare_graph(program, graph, plan, target);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const bool block = plan.strategy == Strategy::scan_block256n;
  const bool sixteen = plan.strategy == Strategy::scan16 || plan.strategy == Strategy::scan16n;
  const std::int64_t per_block =
      block ? 1 : std::int64_t{plan.warps} * plan.rows * (sixteen ? kRun : 1);
  program.launches.push_back({.name = program.name,
                              .grid = ceil_div(SizeExpr::param(segments, "segments"), per_block),
                              .warps = plan.warps});
  Builder b(program);
  PublishedScan scan(b, program, graph, plan);
  const ValueId exist = b.param(segments);
  switch (plan.strategy) {
    case Strategy::scan16: scan.scan16(exist); break;
    case Strategy::scan16n: scan.scan16n(exist); break;
    case Strategy::scan256: scan.scan256(exist); break;
    case Strategy::scan256n: scan.scan256n(exist); break;
    default: scan.block256n();
  }
  return program;
}

}  // namespace chainfold::codegen
