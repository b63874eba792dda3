#include "chainfold/codegen/lower/tile/quads.hpp"

#include <utility>

namespace chainfold::codegen {

namespace {

const MmaRow& row_of(int mma_row) { return mma_table()[static_cast<std::size_t>(mma_row)]; }

ValueId product(Builder& b, int mma_row, ValueId a, const ConstMatrix& matrix) {
  const ValueId zero = b.const_fragment(mma_row, Operand::c, {.kind = MatrixKind::zeros});
  return b.mma(a, b.const_fragment(mma_row, Operand::b, matrix), zero);
}

/// The sum of D's elements `column` (0 or 1) of a lane's rows.
ValueId over_halves(Builder& b, int mma_row, ValueId d, int column) {
  ValueId sum = b.extract(d, column);
  for (int half = 1; half < QuadLayout(row_of(mma_row)).halves; ++half)
    sum = b.add(sum, b.extract(d, 2 * half + column));
  return sum;
}

}  // namespace

ValueId data_as_a(Builder& b, int mma_row, ValueId elements) {
  const MmaRow& row = row_of(mma_row);
  const QuadLayout layout(row);
  std::vector<std::pair<ValueId, int>> pieces;
  for (int i = 0; i < row.elements(Operand::a); i += layout.run)
    pieces.emplace_back(b.extract(elements, layout.element(i), layout.run), layout.run);
  return b.pack(mma_row, Operand::a, std::move(pieces));
}

ValueId quad_total(Builder& b, int mma_row, ValueId a) {
  const int width = row_of(mma_row).elements(Operand::a);
  const ValueId d = product(b, mma_row, a, {.kind = MatrixKind::ones, .load_width = width});
  return over_halves(b, mma_row, d, 0);
}

QuadPrefixes quad_prefixes(Builder& b, int mma_row, ValueId a, std::int64_t segment, bool reverse) {
  const QuadLayout layout(row_of(mma_row));
  const int width = layout.halves * layout.held;
  const auto size = static_cast<int>(segment);
  // Positions of a segment in a row of A.
  const int within = segment <= layout.held ? size : size / layout.halves;
  const bool one_lane = segment > 0 && segment <= width;
  QuadPrefixes result;
  result.prefixes.assign(static_cast<std::size_t>(width), kNoValue);
  auto prefix = [&](int i) -> ValueId& { return result.prefixes[static_cast<std::size_t>(i)]; };
  for (int step = 0; step < layout.steps(); ++step) {
    const ValueId d = product(b, mma_row, a,
                              {.kind = reverse ? MatrixKind::lower : MatrixKind::upper,
                               .parameter = within,
                               .load_width = width,
                               .step = step});
    for (int half = 0; half < layout.halves; ++half) {
      for (int i = 0; i < 2; ++i)
        prefix(half * layout.held + 2 * step + i) = b.extract(d, 2 * half + i);
    }
    if (step == 0) result.probe = over_halves(b, mma_row, d, 0);
  }
  ValueId lanes = kNoValue;
  if (!one_lane) {
    lanes = product(b, mma_row, a,
                    {.kind = reverse ? MatrixKind::after_lanes : MatrixKind::before_lanes,
                     .parameter = within,
                     .load_width = width});
    result.first = over_halves(b, mma_row, lanes, 0);
    result.probe = over_halves(b, mma_row, lanes, 1);
    if (segment == 0) result.total = result.probe;
  }
  if (layout.halves == 1 || (segment > 0 && segment <= layout.held)) return result;
  // Of the half that the scan reaches first, the lane itself is before the other half as well.
  const int first = reverse ? layout.held : 0, second = layout.held - first;
  const ValueId own = prefix(reverse ? first : first + layout.held - 1);
  for (int i = 0; i < layout.held; ++i) {
    prefix(second + i) = b.add(own, prefix(second + i));
    if (lanes == kNoValue) continue;
    const ValueId before = b.extract(lanes, reverse ? 0 : 2);
    prefix(first + i) = b.add(before, prefix(first + i));
  }
  return result;
}

}  // namespace chainfold::codegen
