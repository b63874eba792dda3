// A row's scan within the quads of lanes whose elements a matrix instruction takes together.
#include <algorithm>
#include <utility>

#include "chainfold/codegen/lower/scan/row.hpp"
#include "chainfold/codegen/lower/tile/quads.hpp"

namespace chainfold::codegen {

ScanRow::Prefixes ScanRow::within_quads_by_lanes(std::size_t fold, const Loaded& row,
                                                 std::int64_t first, int lanes) {
  const bool reverse = reverse_[fold];
  Prefixes quads;
  quads.values = within_lanes(fold, tile_.fold_elements(row)[fold], row.width, first, reverse);
  Partial total = quads.values.back();
  if (lanes == 1) return quads;
  const ValueId lane =
      b_.compute(Op::bit_and, {lane_in_order(reverse), b_.i32(lanes - 1)});  // of the segment
  for (int distance = 1; distance < lanes; distance *= 2) {
    const Partial merged = merge(fold, shuffled(total, distance, reverse), total, reverse);
    total = choose(fold, b_.compute(Op::ge, {lane, b_.i32(distance)}), merged, total);
  }
  quads.first =
      tile_.keep_where(fold, shuffled(total, 1, reverse), b_.compute(Op::ge, {lane, b_.i32(1)}));
  for (Partial& prefix : quads.values) prefix = merge(fold, *quads.first, prefix, reverse);
  std::vector<std::uint8_t> last(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l)
    last[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(reverse ? l & ~3 : l | 3);
  for (ValueId& field : total.fields) field = b_.permute(field, last);
  quads.total = std::move(total);
  return quads;
}

ScanRow::Prefixes ScanRow::within_quads(std::size_t fold, const Loaded& row, std::int64_t first) {
  constexpr int kLanes = 4;
  const bool reverse = reverse_[fold];
  const int width = row.width;
  Prefixes quads{.values = {}, .first = {}, .total = {}, .lanes = kLanes};
  quads.alone = segment_ > 0 && std::int64_t{kLanes} * width % segment_ == 0;
  // Lanes of a segment, within a quad.
  const int lanes =
      quads.alone ? static_cast<int>(std::max<std::int64_t>(1, segment_ / width)) : kLanes;
  const DType type = tile_.fold_of(fold).operands[0];
  const QuadPrefixes sums = quad_prefixes(b_, tile_.how(fold).mma_row, tile_.quads_of(fold, row),
                                          quads.alone ? segment_ : 0, reverse);
  Builder::Values values;
  for (const ValueId prefix : sums.prefixes) values.push_back(b_.convert(prefix, type));
  if (reverse) std::reverse(values.begin(), values.end());
  for (const ValueId more : {sums.first, sums.total}) {
    if (more != kNoValue) values.push_back(b_.convert(more, type));
  }
  if (tile_.guarded() && is_float(type)) {
    // 0 * NaN = NaN: one bad element would spoil what comes before it, and other segments.
    const ValueId bad =
        b_.compute(Op::eq, {b_.compute(Op::is_finite, {sums.probe}), b_.boolean(false)});
    values = b_.branch(
        b_.any(bad),
        [&] {
          const Prefixes by_lanes = within_quads_by_lanes(fold, row, first, lanes);
          Builder::Values redone;
          for (const Partial& prefix : by_lanes.values) redone.push_back(prefix.fields[0]);
          if (sums.first != kNoValue) redone.push_back(by_lanes.first->fields[0]);
          if (sums.total != kNoValue) redone.push_back(by_lanes.total.fields[0]);
          return redone;
        },
        [&] { return values; });
  }
  auto partial = [](ValueId value) { return Partial{.fields = {value}}; };
  if (sums.total != kNoValue) quads.total = partial(values.back());
  if (sums.first != kNoValue) quads.first = partial(values[static_cast<std::size_t>(width)]);
  for (int i = 0; i < width; ++i)
    quads.values.push_back(partial(values[static_cast<std::size_t>(i)]));
  return quads;
}

}  // namespace chainfold::codegen
