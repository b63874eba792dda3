#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/scan.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

ScanSquares::ScanSquares(Builder& builder, Program& program, const Graph& graph, const Plan& plan)
    : b_(builder),
      program_(program),
      graph_(graph),
      plan_(plan),
      tile_(builder, graph, plan),
      row_(plan.folds[0].mma_row),
      element_(mma_table()[static_cast<std::size_t>(row_)].input) {}

Address ScanSquares::address(ValueId first, int piece, std::int64_t stride) {
  const std::int64_t offset = piece % 2 * 8 * stride + piece / 2 * 8;
  return {.base = b_.add(first, b_.i64(offset)), .group = 4, .stride = stride};
}

ScanSquares::Square ScanSquares::load(ValueId first, std::int64_t stride,
                                      const std::array<ValueId, 2>& masks) {
  Square square;
  for (int p = 0; p < kPieces; ++p) {
    square.data[at(p)] = tile_.load(address(first, p, stride), kPair, masks[at(p % 2)], kNoValue);
  }
  return square;
}

void ScanSquares::store(const Square& square, const Values& values, ValueId first,
                        std::int64_t stride, ValueId extent) {
  for (int p = 0; p < kPieces; ++p) {
    const std::vector<ValueId> outputs =
        tile_.finish_elements(square.data[at(p)], {.running = {values[at(p)]}}, extent);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      b_.store(static_cast<int>(graph_.inputs.size() + i), address(first, p, stride),
               b_.widen(outputs[i], kPair), square.data[at(p)].mask);
    }
  }
}

ScanSquares::Square ScanSquares::load_ragged(ValueId first, ValueId left) {
  const ValueId lane = b_.convert(b_.lane(), DType::i64);
  for (int j = 0; j < kSquare; j += kWarpWidth) {
    const ValueId mask = b_.lt(lane, b_.sub(left, b_.i64(j)));
    b_.shared_store(squares_, {b_.add(room_, b_.i64(j))},
                    b_.load(0, {b_.add(first, b_.i64(j))}, 1, mask));
  }
  b_.barrier();
  Square square;
  for (int p = 0; p < kPieces; ++p)
    square.data[at(p)].inputs = {b_.shared_load(squares_, address(room_, p, kRun), kPair)};
  return square;
}

void ScanSquares::store_ragged(const Values& values, ValueId first, ValueId left) {
  const ValueId lane = b_.convert(b_.lane(), DType::i64);
  const ValueId t = b_.compute(Op::bit_and, {b_.lane(), b_.i32(3)});
  const ValueId own = b_.add(b_.mul(b_.div(lane, b_.i64(4)), b_.i64(kRun)),
                             b_.mul(b_.convert(t, DType::i64), b_.i64(kPair)));
  for (int p = 0; p < kPieces; ++p) {
    for (int i = 0; i < kPair; ++i) {
      const std::int64_t offset = p % 2 * 8 * kRun + p / 2 * 8 + i;
      b_.store(1, {.base = b_.add(first, b_.i64(offset)), .group = 4, .stride = kRun, .offset = t},
               b_.extract(values[at(p)], i), b_.lt(own, b_.sub(left, b_.i64(offset))));
    }
  }
}

std::array<ValueId, 2> ScanSquares::rows_scanned(const Square& square,
                                                 const std::array<ValueId, 2>& c) {
  std::vector<std::pair<ValueId, int>> pieces;
  for (const Loaded& piece : square.data) pieces.emplace_back(piece.inputs[0], kPair);
  const ValueId a = b_.pack(row_, Operand::a, std::move(pieces));
  ValueId start = zero();
  if (c[0] != kNoValue)
    start = b_.pack(row_, Operand::c, {{c[0], 1}, {c[0], 1}, {c[1], 1}, {c[1], 1}});
  std::array<ValueId, 2> au{};
  for (int half = 0; half < 2; ++half) {
    const ConstMatrix u{.kind = MatrixKind::upper, .step = half};
    au[at(half)] = b_.mma(a, b_.const_fragment(row_, Operand::b, u), start);
  }
  return au;
}

ScanSquares::Values ScanSquares::values_of(const std::array<ValueId, 2>& d) {
  Values values{};
  for (int p = 0; p < kPieces; ++p) values[at(p)] = b_.extract(d[at(p / 2)], p % 2 * kPair, kPair);
  return values;
}

std::array<ValueId, 2> ScanSquares::last_column(const Values& values) {
  std::vector<std::uint8_t> last(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l) last[at(l)] = static_cast<std::uint8_t>(l | 3);
  return {b_.permute(b_.extract(values[2], 1), last), b_.permute(b_.extract(values[3], 1), last)};
}

ValueId ScanSquares::last_value(ValueId of_last_row) {
  return b_.shuffle_from(of_last_row, b_.splat(b_.i32(kWarpWidth - 1)));
}

void ScanSquares::declare_squares(int squares) {
  auto& shared = program_.launches.back().shared;
  squares_ = static_cast<int>(shared.size());
  shared.push_back({"squares", element_, plan_.warps * squares * kSquare});
  room_ = b_.mul(b_.convert(b_.warp(), DType::i64), b_.i64(std::int64_t{squares} * kSquare));
}

void ScanSquares::share(const Square& square, int index) {
  for (int p = 0; p < kPieces; ++p)
    b_.shared_store(squares_, address(room(index), p, kRun), square.data[at(p)].inputs[0]);
}

std::array<ValueId, 2> ScanSquares::rows_before(int index) {
  const ValueId lane = b_.lane(), g = b_.div(lane, b_.i32(4));
  const ValueId t = b_.compute(Op::bit_and, {lane, b_.i32(3)});
  const ValueId own = b_.add(b_.mul(t, b_.i32(2 * kRun)), g);
  const ConstMatrix l{.kind = MatrixKind::strict_lower};
  std::array<ValueId, 2> la{};
  for (int half = 0; half < 2; ++half) {
    Builder::Values elements;
    for (int i = 0; i < 4; ++i) {  // rows 2t, 2t + 1, 2t + 8, 2t + 9
      const int offset = (i % 2 + i / 2 * 8) * kRun + half * 8;
      elements.push_back(b_.shared_load(
          squares_,
          {.base = b_.add(room(index), b_.i64(offset)), .group = 1, .stride = 0, .offset = own}));
    }
    const ValueId data = b_.pack(row_, Operand::b, {{b_.concat(std::move(elements)), 4}});
    la[at(half)] = b_.mma(b_.const_fragment(row_, Operand::a, l), data, zero());
  }
  return la;
}

ScanSquares::Scanned ScanSquares::scanned(const Square& square, int index,
                                          const std::array<ValueId, 2>& c) {
  std::array<ValueId, 2> au = rows_scanned(square, c);
  const std::array<ValueId, 2> la = rows_before(index);
  Scanned result;
  if (plan_.published.product) {  // L * A becomes an operand again: rounded
    const ValueId a = b_.pack(row_, Operand::a,
                              {{b_.convert(b_.extract(la[0], 0, 4), element_), 4},
                               {b_.convert(b_.extract(la[1], 0, 4), element_), 4}});
    const ValueId ones = b_.const_fragment(row_, Operand::b, {.kind = MatrixKind::ones});
    for (ValueId& half : au) half = b_.mma(a, ones, half);
    result.values = values_of(au);
    result.parts = {last_value(b_.extract(result.values[3], 1))};
    return result;
  }
  result.values = values_of(au);
  std::array<ValueId, 2> before{};  // of rows g and g + 8
  for (int r = 0; r < 2; ++r) {
    auto pair = [&](ValueId d) { return b_.add(b_.extract(d, 2 * r), b_.extract(d, 2 * r + 1)); };
    const Partial sum{.fields = {b_.add(pair(la[0]), pair(la[1]))}};
    before[at(r)] = tile_.reduce_lanes({sum}, 1, 4)[0].fields[0];
  }
  result.parts = {last_value(b_.extract(result.values[3], 1)), last_value(before[1])};
  for (int p = 0; p < kPieces; ++p)
    result.values[at(p)] = b_.add(before[at(p % 2)], result.values[at(p)]);
  return result;
}

Partial ScanSquares::state_of(const Scanned& square) {
  Partial state = tile_.lift(0, Partial{.fields = {square.parts[0]}});
  for (std::size_t i = 1; i < square.parts.size(); ++i)
    state = tile_.merge(0, state, Partial{.fields = {square.parts[i]}});
  return state;
}

void ScanSquares::add(Values& values, const Partial& state) {
  const ValueId sum = tile_.collapse(0, state).fields[0];
  for (ValueId& value : values) value = b_.add(sum, value);
}

std::pair<Partial, Partial> ScanSquares::meet(const Scanned& result, const StateArrays& partials) {
  partials.store_one(b_, tile_, b_.convert(b_.warp(), DType::i64), {state_of(result)});
  b_.barrier();
  const ValueId has = b_.lt(b_.lane(), b_.i32(plan_.warps));
  const Partial of_warps = partials.load(b_, tile_, {b_.i64(0)}, has)[0];
  return plan_.published.product ? partials_by_product(of_warps) : partials_by_lanes(of_warps);
}

std::pair<Partial, Partial> ScanSquares::partials_by_lanes(const Partial& of_warps) {
  const Partial before = tile_.keep_where(0, of_warps, b_.lt(b_.lane(), b_.splat(b_.warp())));
  return {tile_.reduce_lanes({before}, 1, kWarpWidth)[0],
          tile_.reduce_lanes({of_warps}, 1, kWarpWidth)[0]};
}

std::pair<Partial, Partial> ScanSquares::partials_by_product(const Partial& of_warps) {
  const ValueId sum = tile_.collapse(0, of_warps).fields[0];  // lane w: of warp w, 0 behind them
  const ValueId t = b_.compute(Op::bit_and, {b_.lane(), b_.i32(3)});
  const ValueId top = b_.lt(b_.lane(), b_.i32(4));
  Builder::Values row;
  for (const int column : {0, 1, 8, 9}) {
    const ValueId from = b_.add(b_.mul(t, b_.i32(2)), b_.i32(column));
    row.push_back(b_.select(top, b_.shuffle_from(sum, from), b_.constant(DType::f32, 0)));
  }
  auto rounded = [&](std::size_t i) {
    return b_.convert(b_.concat({row[i], row[i + 1]}), element_);
  };
  const ValueId a =
      b_.pack(row_, Operand::a, {{rounded(0), 2}, {kNoValue, 2}, {rounded(2), 2}, {kNoValue, 2}});
  std::array<ValueId, 2> d{};
  for (int half = 0; half < 2; ++half) {
    const ConstMatrix u{.kind = MatrixKind::upper, .step = half};
    d[at(half)] = b_.mma(a, b_.const_fragment(row_, Operand::b, u), zero());
  }
  // Warp w takes column w - 1: elements of lane (w - 1) / 2 % 4.
  const ValueId column = b_.sub(b_.splat(b_.warp()), b_.i32(1));
  auto fetch = [&](ValueId wanted) {
    const ValueId lane =
        b_.compute(Op::bit_and, {b_.compute(Op::shr, {wanted, b_.i32(1)}), b_.i32(3)});
    const ValueId odd =
        b_.compute(Op::ne, {b_.compute(Op::bit_and, {wanted, b_.i32(1)}), b_.i32(0)});
    auto of_half = [&](ValueId half) {
      return b_.select(odd, b_.shuffle_from(b_.extract(half, 1), lane),
                       b_.shuffle_from(b_.extract(half, 0), lane));
    };
    return b_.select(b_.compute(Op::ge, {wanted, b_.i32(8)}), of_half(d[1]), of_half(d[0]));
  };
  const Partial before = tile_.keep_where(0, Partial{.fields = {fetch(column)}},
                                          b_.compute(Op::ge, {column, b_.i32(0)}));
  const Partial all{.fields = {fetch(b_.splat(b_.i32(kRun - 1)))}};
  return {tile_.lift(0, before), tile_.lift(0, all)};
}

StateArrays ScanSquares::declare_partials() {
  return StateArrays::in_shared(program_, graph_, "partial", plan_.warps);
}

}  // namespace chainfold::codegen
