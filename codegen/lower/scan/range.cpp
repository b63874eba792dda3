// Rows of a range, which a CPU's warp reads one element or one word a lane; ScanRow's second half.
#include <algorithm>
#include <utility>

#include "chainfold/codegen/lower/scan/row.hpp"

namespace chainfold::codegen {

std::vector<std::vector<ValueId>> ScanRow::scan_range(const std::vector<Loaded>& loaded,
                                                      Partials& states, bool batched) {
  std::vector<Row> rows;
  for (const Loaded& row : loaded) rows.push_back({tile_.fold_elements(row), row.width});
  std::vector<std::vector<ValueId>> values(rows.size(), std::vector<ValueId>(states.size()));
  for (std::size_t f = 0; f < states.size(); ++f) {
    if (batched && tile_.fold_of(f).tile &&
        std::none_of(rows.begin(), rows.end(),
                     [&](const Row& row) { return row.elements[f].lifted; })) {
      const std::vector<ValueId> of_fold = scan_batch(f, rows, states[f]);
      for (std::size_t r = 0; r < rows.size(); ++r) values[r][f] = of_fold[r];
      continue;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      RowCarry carry{.state = states[f]};
      values[r][f] = screens_rows(f) ? scan_places(f, rows[r].elements[f], rows[r].width, 0, carry)
                                     : scan(f, rows[r].elements[f], rows[r].width, 0, carry);
      states[f] = *settled(f, carry);
    }
  }
  return values;
}

ScanRow::Prefixes ScanRow::within_row(std::size_t fold, const Partial& elements, int width,
                                      ValueId follows) {
  const bool reverse = reverse_[fold];
  Prefixes row;
  row.values = within_lanes(fold, elements, width, 0, reverse);
  std::vector<Partial>& prefixes = row.values;
  for (ValueId& field : prefixes.back().fields) field = b_.splat(field);
  prefixes.back() = across_lanes(fold, std::move(prefixes.back()), {.reverse = reverse});
  row.total = broadcast_last(prefixes.back(), reverse);
  if (width == 1 && !exclusive_[fold]) return row;
  // What the row has before each lane comes before all of a lane's elements but the last, which has
  // it already.
  const Partial before = tile_.keep_where(fold, shuffled(prefixes.back(), 1, reverse), follows);
  for (int i = 0; i < width - 1; ++i) {
    Partial& prefix = prefixes[static_cast<std::size_t>(i)];
    prefix = merge(fold, before, prefix, reverse);
  }
  if (exclusive_[fold]) {
    prefixes.pop_back();
    prefixes.insert(prefixes.begin(), before);
  }
  return row;
}

std::vector<ValueId> ScanRow::scan_batch(std::size_t fold, const std::vector<Row>& rows,
                                         Partial& state) {
  const bool reverse = reverse_[fold];
  const ValueId follows = b_.compute(Op::ge, {lane_in_order(reverse), b_.i32(1)});
  std::vector<std::vector<Partial>> prefixes;  // of each row, in the scan's order
  std::vector<Partial> totals;                 // of it and those before it in the batch
  for (const Row& row : rows) {
    Prefixes within = within_row(fold, row.elements[fold], row.width, follows);
    prefixes.push_back(std::move(within.values));
    totals.push_back(std::move(within.total));
  }
  const std::size_t count = rows.size();
  for (std::size_t half = 1; half < count; half *= 2) {
    for (std::size_t start = 0; start + half < count; start += 2 * half) {
      for (std::size_t r = start + half; r < std::min(start + 2 * half, count); ++r)
        totals[r] = merge(fold, totals[start + half - 1], totals[r], reverse);
    }
  }
  state = broadcast_last(state, reverse);  // in all lanes already: now the executor knows, too
  std::vector<ValueId> values;
  for (std::size_t r = 0; r < count; ++r) {
    // What comes before the row, rounded at most twice: the state's fields are its sum.
    std::optional<Partial> before;
    if (r > 0) before = totals[r - 1];
    const Partial all = behind_state(fold, state, std::move(before));
    for (Partial& prefix : prefixes[r]) prefix = merge(fold, all, prefix, reverse);
    values.push_back(finished(fold, prefixes[r], reverse, true));
  }
  state = merge(fold, state, totals.back(), reverse);
  return values;
}

}  // namespace chainfold::codegen
