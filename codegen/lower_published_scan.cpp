// The published scans ([D] 5): squares of 16 x 16 elements in row-major order as operand A, so that
// A * U holds the prefixes of its rows, and (L * A) * 1 what the rows before each sum up to.
//
// The square's fragment comes by four loads of two neighbours a lane. L * A takes it as operand B,
// whose layout is another: it goes through shared memory, as in the paper. Rows meet in that
// product, so that a NaN reaches what comes before it: these plans are for finite data.
#include <array>
#include <string>
#include <utility>

#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_published.hpp"
#include "chainfold/codegen/lower_states.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kRun = SquareLowering::kRun, kSquare = SquareLowering::kSquare;
constexpr int kPieces = 4, kPair = 2;  // pairs of elements of a square that a lane holds

/// Pairs of rows g and g + 8, first of columns 0 to 7, then of 8 to 15.
struct Square {
  std::array<Loaded, kPieces> data;
};
/// The same of f32.
using Values = std::array<ValueId, kPieces>;

class ScanSquares {
 public:
  ScanSquares(Builder& b, Program& program, const Graph& graph, const Plan& plan)
      : b_(b),
        program_(program),
        graph_(graph),
        plan_(plan),
        tile_(b, graph, plan),
        row_(plan.folds[0].mma_row),
        element_(mma_table()[static_cast<std::size_t>(row_)].input) {}

  TileLowering& tile() { return tile_; }

  /// Rows of the square lie `stride` apart; masks are of rows g and g + 8.
  Square load(ValueId first, std::int64_t stride, const std::array<ValueId, 2>& masks) {
    Square square;
    for (int p = 0; p < kPieces; ++p) {
      square.data[at(p)] = tile_.load(address(first, p, stride), kPair, masks[at(p % 2)], kNoValue);
    }
    return square;
  }
  void store(const Square& square, const Values& values, ValueId first, std::int64_t stride,
             ValueId extent) {
    for (int p = 0; p < kPieces; ++p) {
      const std::vector<ValueId> outputs =
          tile_.finish_elements(square.data[at(p)], {values[at(p)]}, extent);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        b_.store(static_cast<int>(graph_.inputs.size() + i), address(first, p, stride),
                 b_.widen(outputs[i], kPair), square.data[at(p)].mask);
      }
    }
  }

  /// A * U + c, where c has one value a row (of rows g and g + 8), or none.
  std::array<ValueId, 2> rows_scanned(const Square& square, const std::array<ValueId, 2>& c) {
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
  Values values_of(const std::array<ValueId, 2>& d) {
    Values values{};
    for (int p = 0; p < kPieces; ++p)
      values[at(p)] = b_.extract(d[at(p / 2)], p % 2 * kPair, kPair);
    return values;
  }
  /// Every lane receives the last values of its rows g and g + 8.
  std::array<ValueId, 2> last_column(const Values& values) {
    std::vector<std::uint8_t> last(kWarpWidth);
    for (int l = 0; l < kWarpWidth; ++l) last[at(l)] = static_cast<std::uint8_t>(l | 3);
    return {b_.permute(b_.extract(values[2], 1), last), b_.permute(b_.extract(values[3], 1), last)};
  }
  ValueId last_value(ValueId of_last_row) {
    return b_.shuffle_from(of_last_row, b_.splat(b_.i32(kWarpWidth - 1)));
  }

  /// Room in shared memory for `squares` of each warp.
  void declare_squares(int squares) {
    auto& shared = program_.launches.back().shared;
    squares_ = static_cast<int>(shared.size());
    shared.push_back({"squares", element_, plan_.warps * squares * kSquare});
    room_ = b_.mul(b_.convert(b_.warp(), DType::i64), b_.i64(std::int64_t{squares} * kSquare));
  }
  /// Hands a square over; a barrier must stand before it is multiplied from the left.
  void share(const Square& square, int index) {
    for (int p = 0; p < kPieces; ++p)
      b_.shared_store(squares_, address(room(index), p, kRun), square.data[at(p)].inputs[0]);
  }
  /// L * A, rows before each: columns 0 to 7 and 8 to 15.
  std::array<ValueId, 2> rows_before(int index) {
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
  /// A whole square scanned: the values, and what its last one is the sum of.
  struct Scanned {
    Values values{};
    std::vector<ValueId> parts;  ///< in all lanes
  };
  Scanned scanned(const Square& square, int index, const std::array<ValueId, 2>& c) {
    std::array<ValueId, 2> au = rows_scanned(square, c);
    const std::array<ValueId, 2> la = rows_before(index);
    Scanned result;
    if (plan_.product) {  // L * A becomes an operand again: rounded
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
  Partial state_of(const Scanned& square) {
    Partial state = tile_.lift(0, Partial{.fields = {square.parts[0]}});
    for (std::size_t i = 1; i < square.parts.size(); ++i)
      state = tile_.merge(0, state, Partial{.fields = {square.parts[i]}});
    return state;
  }
  /// Adds to all of `values` what a state holds.
  void add(Values& values, const Partial& state) {
    const ValueId sum = tile_.collapse(0, state).fields[0];
    for (ValueId& value : values) value = b_.add(sum, value);
  }

  /// Segments of 16, one a row.
  void scan16(ValueId exist) {
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kRun * plan_.rows));
    std::vector<Square> squares;
    for (int u = 0; u < plan_.rows; ++u)
      squares.push_back(load(element(first, u), kRun, rows_that_exist(first, u, exist)));
    for (int u = 0; u < plan_.rows; ++u) {
      const Square& square = squares[at(u)];
      store(square, values_of(rows_scanned(square, {kNoValue, kNoValue})), element(first, u), kRun,
            extent());
    }
  }

  /// Segments of 16 N, one a row: sixteen elements of each at a time.
  void scan16n(ValueId exist) {
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kRun));
    const std::array<ValueId, 2> masks = rows_that_exist(first, 0, exist);
    const bool chained = plan_.chain == 0;
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
              const Square square = load(at_element, plan_.segment, masks);
              std::array<ValueId, 2> c{kNoValue, kNoValue};
              if (chained) c = {s[0], s[1]};
              Values values = values_of(rows_scanned(square, c));
              const std::array<ValueId, 2> last = last_column(values);
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
              store(square, values, at_element, plan_.segment, extent());
              return next;
            });
  }

  /// Segments of 256, `rows` a warp.
  void scan256(ValueId exist) {
    declare_squares(plan_.rows);
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(plan_.rows));
    std::vector<Square> squares;
    for (int u = 0; u < plan_.rows; ++u) {
      const ValueId mask = b_.splat(b_.lt(b_.add(first, b_.i64(u)), exist));
      squares.push_back(
          load(b_.mul(b_.add(first, b_.i64(u)), b_.i64(kSquare)), kRun, {mask, mask}));
      share(squares.back(), u);
    }
    b_.barrier();
    for (int u = 0; u < plan_.rows; ++u) {
      const Scanned result = scanned(squares[at(u)], u, {kNoValue, kNoValue});
      store(squares[at(u)], result.values, b_.mul(b_.add(first, b_.i64(u)), b_.i64(kSquare)), kRun,
            extent());
    }
  }

  /// Segments of 256 N, a warp each: S is the last value of the square before.
  void scan256n(ValueId exist) {
    declare_squares(1);
    const ValueId segment = warp_of_grid(b_, plan_.warps);
    const ValueId mask = b_.splat(b_.lt(segment, exist));
    const bool chained = plan_.chain == 0;
    const Builder::Values start = chained ? Builder::Values{b_.splat(b_.constant(DType::f32, 0))}
                                          : Builder::Values(tile_.flatten({tile_.identity(0)}));
    b_.loop(b_.i64(0), b_.i64(squares_of(plan_.segment)), b_.i64(1), start,
            [&](ValueId i, const Builder::Values& s) {
              const ValueId first =
                  b_.add(b_.mul(segment, b_.i64(plan_.segment)), b_.mul(i, b_.i64(kSquare)));
              const Square square = load(first, kRun, {mask, mask});
              share(square, 0);
              b_.barrier();
              std::array<ValueId, 2> c{kNoValue, kNoValue};
              if (chained) c = {s[0], s[0]};
              Scanned result = scanned(square, 0, c);
              Builder::Values next;
              if (chained) {
                next = {last_value(b_.extract(result.values[3], 1))};
              } else {
                const Partial state = tile_.unflatten(s)[0];
                next = tile_.flatten({tile_.merge(0, state, state_of(result))});
                add(result.values, state);
              }
              store(square, result.values, first, kRun, extent());
              b_.barrier();  // before the next square takes its place
              return next;
            });
  }

  /// The warps' partial sums meet in shared memory: what comes before the warp's square, and the
  /// fold of all. Contains a barrier.
  std::pair<Partial, Partial> meet(const Scanned& result, const StateArrays& partials) {
    partials.store_one(b_, tile_, b_.convert(b_.warp(), DType::i64), {state_of(result)});
    b_.barrier();
    const ValueId has = b_.lt(b_.lane(), b_.i32(plan_.warps));
    const Partial of_warps = partials.load(b_, tile_, {b_.i64(0)}, has)[0];
    return plan_.product ? partials_by_product(of_warps) : partials_by_lanes(of_warps);
  }
  /// What comes before the warp, and the fold of all.
  std::pair<Partial, Partial> partials_by_lanes(const Partial& of_warps) {
    const Partial before = tile_.keep_where(0, of_warps, b_.lt(b_.lane(), b_.splat(b_.warp())));
    return {tile_.reduce_lanes({before}, 1, kWarpWidth)[0],
            tile_.reduce_lanes({of_warps}, 1, kWarpWidth)[0]};
  }
  /// The partial sums, rounded, as the first row of a square, times U.
  std::pair<Partial, Partial> partials_by_product(const Partial& of_warps) {
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
  StateArrays declare_partials() {
    return StateArrays::in_shared(program_, graph_, "partial", plan_.warps);
  }

  /// A block a segment of 256 N.
  void block256n() {
    declare_squares(1);
    const StateArrays partials = declare_partials();
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
              const Square square = load(first, kRun, {mask, mask});
              share(square, 0);
              b_.barrier();
              Scanned result = scanned(square, 0, {kNoValue, kNoValue});
              const auto [before, all] = meet(result, partials);
              add(result.values, tile_.merge(0, carry, before));
              store(square, result.values, first, kRun, extent());
              b_.barrier();
              return Builder::Values(tile_.flatten({tile_.merge(0, carry, all)}));
            });
  }

  // Everything in three launches. The states of blocks are in scratch.

  /// A square a warp: their scans within the block go to the output, the block's fold to scratch.
  void grid_squares(ValueId elements, const StateArrays& states) {
    declare_squares(1);
    const StateArrays partials = declare_partials();
    const ValueId first = b_.mul(warp_of_grid(b_, plan_.warps), b_.i64(kSquare));
    const ValueId left = b_.sub(elements, first), lane = b_.convert(b_.lane(), DType::i64);
    for (int j = 0; j < kSquare; j += kWarpWidth) {
      const ValueId mask = b_.lt(lane, b_.sub(left, b_.i64(j)));
      b_.shared_store(squares_, {b_.add(room_, b_.i64(j))},
                      b_.load(0, {b_.add(first, b_.i64(j))}, 1, mask));
    }
    b_.barrier();
    Square square;
    for (int p = 0; p < kPieces; ++p)
      square.data[at(p)].inputs = {b_.shared_load(squares_, address(room_, p, kRun), kPair)};
    Scanned result = scanned(square, 0, {kNoValue, kNoValue});
    const auto [before, all] = meet(result, partials);
    add(result.values, before);
    const ValueId t = b_.compute(Op::bit_and, {b_.lane(), b_.i32(3)});
    const ValueId own = b_.add(b_.mul(b_.div(lane, b_.i64(4)), b_.i64(kRun)),
                               b_.mul(b_.convert(t, DType::i64), b_.i64(kPair)));
    for (int p = 0; p < kPieces; ++p) {
      for (int i = 0; i < kPair; ++i) {
        const std::int64_t offset = p % 2 * 8 * kRun + p / 2 * 8 + i;
        b_.store(1,
                 {.base = b_.add(first, b_.i64(offset)), .group = 4, .stride = kRun, .offset = t},
                 b_.extract(result.values[at(p)], i), b_.lt(own, b_.sub(left, b_.i64(offset))));
      }
    }
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
              for (ValueId& field : state.fields) field = last_value(field);
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
  ValueId zero() { return b_.const_fragment(row_, Operand::c, {.kind = MatrixKind::zeros}); }
  ValueId room(int index) { return b_.add(room_, b_.i64(std::int64_t{index} * kSquare)); }
  ValueId extent() { return b_.i64(plan_.segment); }
  Address address(ValueId first, int piece, std::int64_t stride) {
    const std::int64_t offset = piece % 2 * 8 * stride + piece / 2 * 8;
    return {.base = b_.add(first, b_.i64(offset)), .group = 4, .stride = stride};
  }
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
  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  TileLowering tile_;
  int row_;
  DType element_;
  int squares_ = -1;  // the shared array
  ValueId room_ = kNoValue;
};

Program lower_grid(const Graph& graph, const Plan& plan) {
  Program program;
  program.name = published_scan(plan.strategy)->name;
  declare_graph(program, graph, plan);
  const int elements = add_param(program, "elements", DType::i64, ParamRole::elements);
  const SizeExpr blocks = ceil_div(SizeExpr::param(elements, "elements"), plan.tile);
  const StateArrays states(StateArrays::Memory::global, static_cast<int>(program.buffers.size()));
  declare_states(program, graph, blocks, 1);
  auto launch = [&](const char* name, const SizeExpr& grid, int warps, auto&& body) {
    program.launches.push_back({.name = name, .grid = grid, .warps = warps});
    Builder b(program);
    ScanSquares scan(b, program, graph, plan);
    body(b, scan, b.param(elements));
  };
  program.launches.reserve(3);
  launch("scan_squares", blocks, plan.warps,
         [&](Builder&, ScanSquares& scan, ValueId count) { scan.grid_squares(count, states); });
  launch("scan_partials", 1, 1, [&](Builder& b, ScanSquares& scan, ValueId count) {
    const ValueId tile = b.i64(plan.tile);
    scan.grid_states(b.div(b.add(count, b.i64(plan.tile - 1)), tile), states);
  });
  launch("add_partials", blocks, plan.warps,
         [&](Builder&, ScanSquares& scan, ValueId count) { scan.grid_add(count, states); });
  return program;
}

}  // namespace

Program lower_published_scan(const Graph& graph, const Plan& plan, const Target&) {
  if (plan.strategy == Strategy::scan_grid256n) return lower_grid(graph, plan);
  Program program;
  program.name = published_scan(plan.strategy)->name;
  declare_graph(program, graph, plan);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const bool block = plan.strategy == Strategy::scan_block256n;
  const bool sixteen = plan.strategy == Strategy::scan16 || plan.strategy == Strategy::scan16n;
  const std::int64_t per_block =
      block ? 1 : std::int64_t{plan.warps} * plan.rows * (sixteen ? kRun : 1);
  program.launches.push_back({.name = program.name,
                              .grid = ceil_div(SizeExpr::param(segments, "segments"), per_block),
                              .warps = plan.warps});
  Builder b(program);
  ScanSquares scan(b, program, graph, plan);
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
