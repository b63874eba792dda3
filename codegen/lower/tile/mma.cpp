// What matrix instructions fold of a tile. A constant (or the other factor of a product) is operand
// A, and the tile as it was loaded is operand B. For plans of quads the tile is operand A.
#include <utility>
#include <vector>

#include "chainfold/codegen/lower/tile/quads.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

ValueId TileLowering::quads_of(std::size_t fold, const Loaded& tile) {
  const MmaOperands data = mma_operands(graph_, fold_node(fold));
  return data_as_a(b_, how(fold).mma_row,
                   tile.inputs[static_cast<std::size_t>(graph_.node(data.a).index)]);
}

int TileLowering::lanes_alike() const {
  for (const FoldPlan& fold : plan_.folds) {
    if (fold.unit != Unit::mma_scan) return 1;
  }
  return 4;
}

/// Ones alone multiply the data, so a NaN stays where it belongs.
Partial TileLowering::fold_quads(std::size_t fold, const Loaded& tile) {
  const DType type = fold_of(fold).operands[0];
  const ValueId sum = b_.convert(quad_total(b_, how(fold).mma_row, quads_of(fold, tile)), type);
  if (lanes_alike() > 1) return {.fields = {sum}};
  const ValueId t = b_.compute(Op::bit_and, {b_.lane(), b_.i32(3)});
  return {.fields = {b_.select(b_.compute(Op::eq, {t, b_.i32(0)}), sum, b_.constant(type, 0))}};
}

Partial TileLowering::fold_mma(std::size_t fold, const Loaded& tile) {
  const FoldPlan& how = plan_.folds[fold];
  const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
  const MmaOperands data = mma_operands(graph_, fold_node(fold));
  const int e = row.elements(Operand::b), steps = tile.width / e;
  const bool small = plan_.shares_quads();
  const ValueId va = tile.inputs[static_cast<std::size_t>(graph_.node(data.a).index)];
  const ValueId zero = b_.const_fragment(how.mma_row, Operand::c, {.kind = MatrixKind::zeros});
  const bool chained = row.rounding != MmaRounding::toward_zero;
  ValueId c0 = kNoValue, c1 = kNoValue, chain = zero;
  for (int step = 0; step < steps; ++step) {
    const ValueId b = b_.pack(how.mma_row, Operand::b, {{b_.extract(va, step * e, e), e}});
    ValueId a;
    if (how.unit == Unit::mma_ones) {
      const ConstMatrix matrix{.kind = small ? MatrixKind::segments : MatrixKind::ones,
                               .parameter = small ? plan_.lanes_per_segment * tile.width : 0,
                               .load_width = tile.width,
                               .step = step};
      a = b_.const_fragment(how.mma_row, Operand::a, matrix);
    } else {
      // Row g of A takes the slots that column g of B has in the same lanes; rows g + 8 stay empty.
      const ValueId vb = tile.inputs[static_cast<std::size_t>(graph_.node(data.b).index)];
      std::vector<std::pair<ValueId, int>> pieces;
      for (int i = 0; i < row.elements(Operand::a); ++i) {
        const MatrixPosition at = row.position(Operand::a, 0, i);
        int slot = -1;
        for (int j = 0; at.row == 0 && j < e; ++j) {
          if (row.position(Operand::b, 0, j).row == at.column) slot = j;
        }
        if (slot >= 0) {
          pieces.emplace_back(b_.extract(vb, step * e + slot), 1);
        } else {
          pieces.emplace_back(kNoValue, 1);
        }
      }
      a = b_.pack(how.mma_row, Operand::a, std::move(pieces));
    }
    const ValueId d = b_.mma(a, b, chain);
    if (chained) chain = d;
    if (chained && step + 1 < steps) continue;
    const ValueId d0 = b_.extract(d, 0);
    const ValueId d1 = b_.extract(d, 1);
    c0 = c0 == kNoValue ? d0 : b_.add(c0, d0);
    c1 = c1 == kNoValue ? d1 : b_.add(c1, d1);
  }
  // Column n holds quad n's sum; D keeps it in element n & 1 of the lanes with t = n / 2.
  const ValueId lane = b_.lane();
  const ValueId odd_quad =
      b_.compute(Op::ne, {b_.compute(Op::bit_and, {lane, b_.i32(4)}), b_.i32(0)});
  const ValueId half_quad = b_.compute(Op::shr, {lane, b_.i32(3)});
  const ValueId t = b_.compute(Op::bit_and, {lane, b_.i32(3)});
  const DType type = fold_of(fold).operands[0];
  if (!small) {
    const ValueId own = b_.select(odd_quad, c1, c0);
    const ValueId value = b_.convert(own, type);
    return {.fields = {b_.compute(
                Op::select, {b_.compute(Op::eq, {t, half_quad}), value, b_.constant(type, 0)})}};
  }
  // Row m holds segment m of each quad: fetch (row of this lane's segment, column of its quad).
  const ValueId segment = b_.div(t, b_.i32(plan_.lanes_per_segment));
  const ValueId source = b_.add(b_.mul(segment, b_.i32(4)), half_quad);
  ValueId value =
      b_.compute(Op::select, {odd_quad, b_.shuffle_from(c1, source), b_.shuffle_from(c0, source)});
  value = b_.convert(value, type);
  if (plan_.promises.guard && is_float(type)) {
    // 0 * NaN = NaN: one bad element would spoil the other segments of its quad.
    const ValueId bad = b_.compute(Op::eq, {b_.compute(Op::is_finite, {value}), b_.boolean(false)});
    value = b_.branch(
        b_.any(bad),
        [&] {
          Scope scope = scope_of(tile);  // its own: values of this branch end with it
          Partial part = fold_simt(fold, tile, scope);
          for (int mask = 1; mask < plan_.lanes_per_segment; mask *= 2) {
            part = merge(fold, part, Partial{.fields = {b_.shuffle_xor(part.fields[0], mask)}});
          }
          return Builder::Values{b_.select(bad, part.fields[0], value)};
        },
        [&] { return Builder::Values{value}; })[0];
  }
  return {.fields = {value}, .complete = true};
}

}  // namespace chainfold::codegen
