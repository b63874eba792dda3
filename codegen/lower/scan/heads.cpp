// Runs in which segments begin and end anywhere; ScanTile's part of it.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

void ScanTile::begin_at(ValueId run, ValueId block) {
  run_slot_ = run;
  block_slot_ = block == kNoValue ? b_.i32(0) : block;
  rows_at(run);
}

void ScanTile::rows_at(ValueId slot) {
  slot_ = slot;
  row_.begin_at(b_.rem(slot, b_.i32(static_cast<std::int32_t>(segment_))));
}

ValueId ScanTile::open_at(ValueId slot, bool backward) {
  const auto size = static_cast<std::int32_t>(segment_);
  if (!backward) return b_.rem(slot, b_.i32(size));
  return b_.sub(b_.i32(size - 1), b_.rem(b_.add(slot, b_.i32(size - 1)), b_.i32(size)));
}

Partials ScanTile::total_of_open_segment(const std::vector<Loaded>& rows) {
  return tile_.either(rows, [&] { return open_segment_either(rows); });
}

Partials ScanTile::open_segment_either(const std::vector<Loaded>& rows) {
  Partials totals(tile_.count());
  for (const bool backward : {false, true}) {
    if (std::find(reverse_.begin(), reverse_.end(), backward) == reverse_.end()) continue;
    RowTotals folded(tile_);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const Partials& of_row : fold_open_rows({rows[r]}, static_cast<int>(r), backward))
        folded.add(of_row);
    }
    Partials total = this->total(std::move(folded));
    for (std::size_t f = 0; f < totals.size(); ++f)
      if (reverse(f) == backward) totals[f] = std::move(total[f]);
  }
  return totals;
}

std::vector<Partials> ScanTile::fold_open_rows(const std::vector<Loaded>& rows, int first,
                                               bool reverse) {
  const auto run = static_cast<std::int32_t>(elements());
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_));
  // The slot of the run at which that segment begins, or behind which it ends.
  const ValueId edge =
      reverse ? b_.sub(size, b_.rem(run_slot_, size))
              : b_.sub(b_.i32(run - 1), b_.rem(b_.add(run_slot_, b_.i32(run - 1)), size));
  auto inside = [&](Op op, std::int64_t slot) {
    return b_.compute(op, {edge, b_.i32(static_cast<std::int32_t>(slot))});
  };
  auto begin_of = [&](std::size_t r) {
    return (first + static_cast<std::int64_t>(r)) * row_elements();
  };
  std::vector<std::size_t> wanted;  // rows that the segment may reach
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::int64_t begin = begin_of(r), behind = begin + row_elements();
    if (reverse ? begin < segment_ : behind > run - segment_) wanted.push_back(r);
  }
  if (wanted.empty()) return {};
  auto masked = [&](std::size_t r) {
    Loaded row = rows[r];
    // Segments begin at multiples of what their size and loads have in common.
    const auto step = static_cast<int>(std::gcd(segment_, std::int64_t{row.width}));
    const ValueId left = b_.sub(b_.sub(edge, b_.i32(static_cast<std::int32_t>(begin_of(r)))),
                                b_.mul(b_.lane(), b_.i32(row.width)));
    Builder::Values valid;
    for (int i = 0; i < row.width; ++i)
      valid.push_back(b_.compute(reverse ? Op::gt : Op::le, {left, b_.i32(i / step * step)}));
    row.valid = b_.concat(std::move(valid));
    return tile_.fold_tile(row);
  };
  std::vector<Partials> folded;
  if (segment_ <= row_elements()) {
    for (const std::size_t r : wanted) folded.push_back(tile_.reduce_ordered(masked(r)));
    return folded;
  }
  // The edge is in few rows.
  auto fields = [&](const std::function<Partials(std::size_t)>& of_row) {
    Builder::Values values;
    folded.clear();
    for (const std::size_t r : wanted) {
      folded.push_back(of_row(r));
      for (std::size_t f = 0; f < folded.back().size(); ++f) {
        const std::vector<ValueId>& of_fold = folded.back()[f].fields;
        if (this->reverse(f) == reverse)
          values.insert(values.end(), of_fold.begin(), of_fold.end());
      }
    }
    return values;
  };
  const std::int64_t begin = begin_of(wanted.front());
  const std::int64_t behind = begin_of(wanted.back()) + row_elements();
  const Builder::Values values = b_.branch(
      b_.both(inside(Op::gt, begin), inside(Op::lt, behind)), [&] { return fields(masked); },
      [&] {
        return fields([&](std::size_t r) {
          Partials all = tile_.fold_tile(rows[r]);
          const ValueId there = b_.splat(reverse ? inside(Op::ge, behind) : inside(Op::le, begin));
          for (std::size_t f = 0; f < all.size(); ++f)
            all[f] = tile_.keep_where(f, std::move(all[f]), there);
          return all;
        });
      });
  std::size_t next = 0;
  for (Partials& form : folded) {
    for (std::size_t f = 0; f < form.size(); ++f) {
      if (this->reverse(f) != reverse)
        form[f] = tile_.identity(f);
      else
        for (ValueId& field : form[f].fields) field = values[next++];
    }
    form = tile_.reduce_ordered(std::move(form));
  }
  return folded;
}

Carry ScanTile::scan_together(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                              ValueId first, const Partials& carry) {
  const std::int64_t elements = static_cast<std::int64_t>(rows.size()) * row_elements();
  const std::int64_t ends = has_ends_ ? 1 : 0;  // a segment's last element asks for more
  if (segment_ <= elements + ends) return scan_segments(rows, begin, count, first, carry_of(carry));
  auto scanned = [&](ScanRow::Known known, ValueId exist) {
    row_.know(known);
    const Carry behind = scan_segments(rows, begin, exist, first, carry_of(carry));
    row_.know(ScanRow::Known::nothing);
    return tile_.flatten(tile_.lift(states_of(behind)));
  };
  const ValueId of_one = row_.within_one(0, elements + ends, ranges_reverse_);
  const Builder::Values values = b_.branch(
      b_.both(of_one, b_.compute(Op::ge, {count, b_.i64(elements)})),
      [&] { return scanned(ScanRow::Known::of_one, kNoValue); },
      [&] { return scanned(ScanRow::Known::asked, count); });
  return carry_of(tile_.unflatten(values, true));
}

}  // namespace chainfold::codegen
