#include "chainfold/codegen/lower/published/square.hpp"

#include <algorithm>

#include "chainfold/codegen/lower/tile/declare.hpp"

namespace chainfold::codegen {

namespace {
constexpr int kHalf = 4;  // elements of half a square that a lane holds
}

SquareLowering::SquareLowering(Builder& builder, const Graph& graph, const Plan& plan)
    : b_(builder),
      plan_(plan),
      tile_(builder, graph, plan),
      row_index_(plan.folds[0].mma_row),
      row_(mma_table()[static_cast<std::size_t>(row_index_)]) {
  const ValueId one = b_.constant(row_.input, bits_of_int(row_.input, 1));
  ones_ = b_.concat(Builder::Values(static_cast<std::size_t>(row_.elements(Operand::b)), one));
}

SquareData SquareLowering::load_run(int buffer, ValueId first, int width, ValueId mask) {
  Builder::Values pieces;
  for (int j = 0; j < 2 * kHalf; j += width) {
    pieces.push_back(
        b_.load(buffer, {b_.add(first, b_.i64(std::int64_t{j} * kWarpWidth))}, width, mask));
  }
  if (pieces.size() == 1)
    return {b_.extract(pieces[0], 0, kHalf), b_.extract(pieces[0], kHalf, kHalf)};
  const auto middle = pieces.begin() + static_cast<std::ptrdiff_t>(pieces.size() / 2);
  return {b_.concat({pieces.begin(), middle}), b_.concat({middle, pieces.end()})};
}

SquareData SquareLowering::load_ragged(int buffer, ValueId first, ValueId limit) {
  const ValueId lane = b_.convert(b_.lane(), DType::i64);
  Builder::Values pieces;
  for (int j = 0; j < 2 * kHalf; ++j) {
    const ValueId at = b_.add(first, b_.i64(std::int64_t{j} * kWarpWidth));
    pieces.push_back(b_.load(buffer, {at}, 1, b_.lt(lane, b_.sub(limit, at))));
  }
  const auto middle = pieces.begin() + kHalf;
  return {b_.concat({pieces.begin(), middle}), b_.concat({middle, pieces.end()})};
}

SquareData SquareLowering::load_columns(int buffer, ValueId first, std::int64_t stride, int width,
                                        const SquareData& masks) {
  auto half = [&](ValueId base, ValueId mask) {
    Builder::Values pieces;
    for (int j = 0; j < kHalf; j += width) {
      pieces.push_back(b_.load(
          buffer, {.base = b_.add(base, b_.i64(std::int64_t{j} * 4)), .group = 4, .stride = stride},
          width, mask));
    }
    return b_.concat(std::move(pieces));
  };
  const ValueId left = half(first, masks.left);
  return {left, half(b_.add(first, b_.i64(8 * stride)), masks.right)};
}

ValueId SquareLowering::zero_fragment() {
  return b_.const_fragment(row_index_, Operand::c, {.kind = MatrixKind::zeros});
}

SquareSums SquareLowering::none() { return {zero_fragment(), zero_fragment()}; }

SquareSums SquareLowering::multiply(const SquareData& data, const SquareSums& c) {
  const ValueId p = b_.const_fragment(row_index_, Operand::a, {.kind = MatrixKind::ones});
  const int held = row_.elements(Operand::b);
  auto half = [&](ValueId elements, ValueId sums) {
    for (int i = 0; i < kHalf; i += held) {
      const ValueId fragment =
          b_.pack(row_index_, Operand::b, {{b_.extract(elements, i, held), held}});
      sums = b_.mma(p, fragment, sums);
    }
    return sums;
  };
  const ValueId left = half(data.left, c.left);
  return {left, half(data.right, c.right)};
}

SquareSums SquareLowering::chain(const std::vector<SquareData>& data, std::size_t first,
                                 std::size_t links) {
  SquareSums v = none();
  for (std::size_t i = first; i < std::min(data.size(), first + links); ++i)
    v = multiply(data[i], v);
  return v;
}

// A lane's C fragment of columns 0 to 7 holds what its A fragment takes at k = 0 to 7, in the same
// order. Its other one does for columns 8 to 15: nothing moves between lanes.
ValueId SquareLowering::second_product(const SquareSums& v, ValueId c) {
  const ValueId ones = b_.pack(row_index_, Operand::b, {{ones_, row_.elements(Operand::b)}});
  auto rounded = [&](ValueId half) {
    return b_.convert(b_.extract(half, 0, row_.elements(Operand::c)), row_.input);
  };
  const int width = row_.elements(Operand::c);
  if (row_.elements(Operand::a) == 2 * width) {
    const ValueId a =
        b_.pack(row_index_, Operand::a, {{rounded(v.left), width}, {rounded(v.right), width}});
    return b_.mma(a, ones, c);
  }
  for (const ValueId half : {v.left, v.right})
    c = b_.mma(b_.pack(row_index_, Operand::a, {{rounded(half), width}}), ones, c);
  return c;
}

Partials SquareLowering::total(const SquareSums& v) {
  if (rounds_sums(plan_))
    return {Partial{.fields = {b_.extract(second_product(v, zero_fragment()), 0)}}};
  auto both_columns = [&](ValueId half) {
    return b_.compute(Op::add, {b_.extract(half, 0), b_.extract(half, 1)});
  };
  return {Partial{.fields = {b_.compute(Op::add, {both_columns(v.left), both_columns(v.right)})}}};
}

Partials SquareLowering::across_quads(Partials partials) {
  return rounds_sums(plan_) ? partials : tile_.reduce_lanes(std::move(partials), 1, 4);
}

Partials SquareLowering::columns(const std::vector<SquareSums>& squares) {
  // All rows are alike, so lanes may take any. Bit 2 of a lane says which of its two columns, bit 3
  // which half, bit 4 which square.
  auto has_bit = [&](int bit) {
    return b_.compute(Op::ne, {b_.compute(Op::bit_and, {b_.lane(), b_.i32(bit)}), b_.i32(0)});
  };
  auto column = [&](ValueId half) {
    return b_.compute(Op::select, {has_bit(4), b_.extract(half, 1), b_.extract(half, 0)});
  };
  auto of_square = [&](const SquareSums& v) {
    return b_.compute(Op::select, {has_bit(8), column(v.right), column(v.left)});
  };
  ValueId value = of_square(squares[0]);
  if (squares.size() > 1)
    value = b_.compute(Op::select, {has_bit(16), of_square(squares[1]), value});
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int p = 0; p < kWarpWidth; ++p) {
    source[static_cast<std::size_t>(p)] =
        static_cast<std::uint8_t>((p & 24) | (p & 1) << 2 | (p >> 1 & 3));
  }
  return {Partial{.fields = {b_.permute(value, source)}}};
}

Builder::Values SquareLowering::rounds(ValueId lo, ValueId hi, std::int64_t stride,
                                       const Builder::Values& init, const Body& body) {
  const auto first = b_.constant_of(lo), behind = b_.constant_of(hi);
  const std::int64_t step = stride * plan_.depth;
  if (!first || !behind) {
    return b_.loop(lo, hi, b_.i64(step), init, [&](ValueId at, const Builder::Values& carried) {
      return body(at, plan_.depth, carried);
    });
  }
  const auto from = static_cast<std::int64_t>(*first), to = static_cast<std::int64_t>(*behind);
  const std::int64_t count = (to - from + stride - 1) / stride;
  const std::int64_t full = count / plan_.depth, rest = count % plan_.depth;
  Builder::Values carried = init;
  if (full == 1) carried = body(lo, plan_.depth, carried);
  if (full > 1) {
    const ValueId end = b_.i64(from + full * step);
    carried = b_.loop(lo, end, b_.i64(step), init, [&](ValueId at, const Builder::Values& values) {
      return body(at, plan_.depth, values);
    });
  }
  if (rest > 0) carried = body(b_.i64(from + full * step), static_cast<int>(rest), carried);
  return carried;
}

Partials SquareLowering::add_up(ValueId lo, ValueId hi, std::int64_t stride, bool masked,
                                const Load& load, const Flush& flush) {
  auto load_all = [&](ValueId at, int count) {
    std::vector<SquareData> data;
    for (int k = 0; k < count; ++k) {
      const ValueId index = b_.add(at, b_.i64(k * stride));
      data.push_back(load(index, masked ? b_.lt(index, hi) : kNoValue));
    }
    return data;
  };
  const auto first = b_.constant_of(lo), behind = b_.constant_of(hi);
  if (first && behind) {
    const std::int64_t count = (static_cast<std::int64_t>(*behind - *first) + stride - 1) / stride;
    if (count <= plan_.depth && count <= chain_of(plan_, count))
      return flush(
          chain(load_all(lo, static_cast<int>(count)), 0, static_cast<std::size_t>(count)));
  }
  if (plan_.published.chain == 0) {
    const SquareSums start = none();
    const Builder::Values v =
        rounds(lo, hi, stride, {start.left, start.right},
               [&](ValueId at, int count, const Builder::Values& carried) -> Builder::Values {
                 SquareSums sums{carried[0], carried[1]};
                 for (const SquareData& data : load_all(at, count)) sums = multiply(data, sums);
                 return {sums.left, sums.right};
               });
    return flush({v[0], v[1]});
  }
  const auto links = static_cast<std::size_t>(plan_.published.chain);
  const Builder::Values state = rounds(lo, hi, stride, tile_.flatten({tile_.identity(0)}),
                                       [&](ValueId at, int count, const Builder::Values& carried) {
                                         const std::vector<SquareData> data = load_all(at, count);
                                         Partials sum = tile_.unflatten(carried);
                                         for (std::size_t i = 0; i < data.size(); i += links)
                                           sum = tile_.merge(sum, flush(chain(data, i, links)));
                                         return tile_.flatten(sum);
                                       });
  return tile_.unflatten(state);
}

std::string kernel_name(const Plan& plan) {
  return "fold_" + std::string(published(plan.strategy)->name);
}

Program start_program(const Graph& graph, const Plan& plan, const Target& target, ParamRole role,
                      int& param) {
  Program program;
  program.name = kernel_name(plan);
  declare_graph(program, graph, plan, target);
  param =
      add_param(program, role == ParamRole::segments ? "segments" : "elements", DType::i64, role);
  return program;
}

ValueId warp_of_grid(Builder& b, int warps, int first) {
  const ValueId before = b.compute(Op::mul, {b.block(), b.i64(warps)});
  const ValueId within = b.compute(Op::sub, {b.warp(), b.i32(first)});
  return b.add(before, b.convert(within, DType::i64));
}

void store_outputs(Builder& b, const Graph& graph, TileLowering& tile, const Partials& partials,
                   ValueId first, ValueId extent, ValueId mask) {
  const std::vector<ValueId> outputs = tile.finish(partials, extent);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    b.store(static_cast<int>(graph.inputs.size() + i), {first}, outputs[i], mask);
}

}  // namespace chainfold::codegen
