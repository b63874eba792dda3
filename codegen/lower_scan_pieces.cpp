// A range of a segment by one warp, one element a lane at a time: pieces of memory, each of which
// takes the states that the one before it, in the scan's order, leaves.
#include <algorithm>
#include <functional>
#include <utility>

#include "chainfold/codegen/lower_scan_tile.hpp"

namespace chainfold::codegen {

bool rows_on_lines(const Plan& plan, std::int64_t run) {
  return plan.stream_from > 0 && plan.load_width == 1 && run % kWarpWidth == 0;
}

Partials ScanTile::total_of_range(ValueId begin, ValueId count, ValueId place) {
  const ValueId origin = narrow_tile_.uses_index() ? b_.sub(begin, place) : kNoValue;
  Partials total = narrow_tile_.fold_range(begin, count, origin, kNoValue, b_.i32(0), 1);
  return narrow_tile_.lift(narrow_tile_.reduce_lanes(std::move(total), 1, kWarpWidth));
}

Partials ScanTile::scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                              ValueId extent, const std::vector<ValueId>& folded) {
  const std::int64_t batch = std::int64_t{kWarpWidth} * narrow_.depth;
  const bool lines = plan_.to_lines || rows_on_lines(plan_, plan_.segment);
  // `rows` rows from `at` on: of the first one elements from `from` on, of the last one elements
  // before `limit` (kNoValue: all exist).
  auto rows_from = [&](ValueId at, int rows, ValueId from, ValueId limit,
                       const Builder::Values& carried) {
    Partials states = narrow_tile_.unflatten(carried, true);
    std::vector<Loaded> loaded;
    const ValueId first = narrow_tile_.uses_index() ? b_.add(place, b_.sub(at, begin)) : kNoValue;
    for (int r = 0; r < rows; ++r) {
      const std::int64_t slot = std::int64_t{r} * kWarpWidth;
      const ValueId position =
          narrow_tile_.uses_index()
              ? narrow_tile_.positions(b_.add(first, b_.i64(slot)), kWarpWidth, 1)
              : kNoValue;
      const bool ends = r == rows - 1 && limit != kNoValue;
      ValueId mask = mask_from(1, slot, ends ? b_.sub(limit, at) : kNoValue);
      if (r == 0 && from != kNoValue) {
        const ValueId there =
            b_.compute(Op::ge, {b_.convert(b_.lane(), DType::i64), b_.sub(from, at)});
        mask = mask == kNoValue ? there : b_.both(there, mask);
      }
      loaded.push_back(narrow_tile_.load({.base = b_.add(at, b_.i64(slot))}, 1, mask, position));
    }
    std::vector<Partials> elements;  // from here on rows come in the scan's order
    if (ranges_reverse_) std::reverse(loaded.begin(), loaded.end());
    for (const Loaded& row : loaded) elements.push_back(narrow_tile_.fold_elements(row));
    const auto scanned = narrow_row_.scan_range(elements, states, narrow_.depth > 1);
    for (int i = 0; i < rows; ++i) {
      const int r = ranges_reverse_ ? rows - 1 - i : i;
      std::vector<ValueId> values = folded;
      for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
        if (is_scan_[f]) values[f] = scanned[static_cast<std::size_t>(i)][f];
      }
      store_row(narrow_tile_, loaded[static_cast<std::size_t>(i)],
                b_.add(at, b_.i64(std::int64_t{r} * kWarpWidth)), values, extent, lines);
    }
    return narrow_tile_.flatten(narrow_tile_.lift(std::move(states)));
  };
  const ValueId zero = b_.i64(0), one = b_.i64(1), step = b_.i64(batch);
  using Piece = std::function<Builder::Values(const Builder::Values&)>;
  auto row_by_row = [&](ValueId at, ValueId elements, const Builder::Values& carried) {
    const ValueId limit = b_.add(at, elements), row = b_.i64(kWarpWidth);
    const ValueId rows = b_.div(b_.add(elements, b_.i64(kWarpWidth - 1)), row);
    return b_.loop(zero, rows, one, carried, [&](ValueId j, const Builder::Values& states) {
      const ValueId r = ranges_reverse_ ? b_.sub(b_.sub(rows, one), j) : j;
      return rows_from(b_.add(at, b_.mul(r, row)), 1, kNoValue, limit, states);
    });
  };
  auto batches_from = [&](ValueId at, ValueId batches, const Builder::Values& carried) {
    narrow_tile_.read_ahead(ranges_reverse_ ? -plan_.read_ahead : plan_.read_ahead);
    Builder::Values result =
        b_.loop(zero, batches, one, carried, [&](ValueId j, const Builder::Values& states) {
          const ValueId i = ranges_reverse_ ? b_.sub(b_.sub(batches, one), j) : j;
          return rows_from(b_.add(at, b_.mul(i, step)), narrow_.depth, kNoValue, kNoValue, states);
        });
    narrow_tile_.read_ahead(0);
    return result;
  };
  std::vector<Piece> pieces;  // in memory's order
  const auto known = b_.constant_of(count);
  if (plan_.to_lines && known) {
    // Rows from the line on in which the range begins. Wherever that is, the first one and the last
    // two may have gaps, and the very last one may have nothing.
    const ValueId end = b_.add(begin, count), line = b_.i64(kWarpWidth - 1);
    const ValueId from = b_.sub(begin, b_.compute(Op::bit_and, {begin, line}));
    const std::int64_t rows = *known / kWarpWidth + 1, batches = (rows - 1) / narrow_.depth;
    const auto rest = static_cast<int>(rows - batches * narrow_.depth);
    auto row = [&, from](std::int64_t r) { return b_.add(from, b_.i64(r * kWarpWidth)); };
    if (batches > 0) {
      pieces.emplace_back([=, this](const auto& carried) {
        return rows_from(from, narrow_.depth, begin, kNoValue, carried);
      });
      pieces.emplace_back([=, this](const auto& carried) {
        return batches_from(row(narrow_.depth), b_.i64(batches - 1), carried);
      });
    }
    pieces.emplace_back([=](const auto& carried) {
      return rows_from(row(rows - rest), rest, batches == 0 ? begin : kNoValue, end, carried);
    });
    pieces.emplace_back([=, this](const auto& carried) {
      const ValueId last = row(rows), left = b_.sub(end, last);
      return row_by_row(last, b_.compute(Op::max, {zero, left}), carried);
    });
  } else {
    ValueId at = begin, whole = count;
    if (plan_.to_lines) {
      const ValueId before = b_.compute(Op::bit_and, {b_.sub(zero, begin), b_.i64(kWarpWidth - 1)});
      const ValueId lead = b_.min(count, before);
      pieces.emplace_back([=](const auto& carried) { return row_by_row(begin, lead, carried); });
      at = b_.add(begin, lead);
      whole = b_.sub(count, lead);
    }
    const ValueId batches = b_.div(whole, step);
    pieces.emplace_back([=](const auto& carried) { return batches_from(at, batches, carried); });
    // What is no batch is at the end, so that rows are on lines if the range is.
    pieces.emplace_back([=, this](Builder::Values carried) {
      const ValueId done = b_.mul(batches, step), rest = b_.sub(whole, done);
      const ValueId rest_at = b_.add(at, done);
      const auto left = b_.constant_of(rest);
      if (!left) return row_by_row(rest_at, rest, carried);
      const auto full = static_cast<int>(*left / kWarpWidth);
      const bool ragged = *left % kWarpWidth != 0;
      const ValueId last_at = b_.add(rest_at, b_.i64(std::int64_t{full} * kWarpWidth));
      const ValueId limit = b_.add(rest_at, rest);
      auto last = [&] { return rows_from(last_at, 1, kNoValue, limit, carried); };
      if (ragged && ranges_reverse_) carried = last();
      if (full > 0) carried = rows_from(rest_at, full, kNoValue, kNoValue, carried);
      if (ragged && !ranges_reverse_) carried = last();
      return carried;
    });
  }
  if (ranges_reverse_) std::reverse(pieces.begin(), pieces.end());
  Builder::Values carried = narrow_tile_.flatten(carry);
  for (const Piece& piece : pieces) carried = piece(carried);
  return narrow_tile_.unflatten(carried, true);
}

}  // namespace chainfold::codegen
