// Rows of a range, which a CPU's warp reads one element a lane; ScanRow's second half.
#include <algorithm>
#include <utility>

#include "chainfold/codegen/lower_scan_row.hpp"

namespace chainfold::codegen {

std::vector<std::vector<ValueId>> ScanRow::scan_range(const std::vector<Partials>& rows,
                                                      Partials& states, bool batched) {
  std::vector<std::vector<ValueId>> values(rows.size(), std::vector<ValueId>(states.size()));
  for (std::size_t f = 0; f < states.size(); ++f) {
    if (batched && graph_.folds[f].tile &&
        std::none_of(rows.begin(), rows.end(),
                     [&](const Partials& row) { return row[f].lifted; })) {
      const std::vector<ValueId> of_fold = scan_batch(f, rows, states[f]);
      for (std::size_t r = 0; r < rows.size(); ++r) values[r][f] = of_fold[r];
      continue;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      RowCarry carry{.state = states[f]};
      values[r][f] = scan(f, rows[r][f], 1, 0, carry);
      states[f] = *settled(f, carry);
    }
  }
  return values;
}

std::vector<ValueId> ScanRow::scan_batch(std::size_t fold, const std::vector<Partials>& rows,
                                         Partial& state) {
  const bool reverse = reverse_[fold];
  const ValueId lane = lane_in_order(reverse);
  std::vector<Partial> prefixes, totals;  // of each row; of it and those before it in the batch
  for (const Partials& row : rows) {
    Partial total = row[fold];
    for (ValueId& field : total.fields) field = b_.splat(field);
    total = across_lanes(fold, std::move(total), {.reverse = reverse});
    totals.push_back(broadcast_last(total, reverse));
    if (exclusive_[fold]) {
      total = tile_.keep_where(fold, shuffled(total, 1, reverse),
                               b_.compute(Op::ge, {lane, b_.i32(1)}));
    }
    prefixes.push_back(std::move(total));
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
    values.push_back(merge(fold, all, prefixes[r], reverse).fields[0]);
  }
  state = merge(fold, state, totals.back(), reverse);
  return values;
}

}  // namespace chainfold::codegen
