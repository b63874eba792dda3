// A row's scan of places (Fold::place), which are merged in order: by rows that have no better
// value, or by values, and then by the lanes that have them.
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/scan/row.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

bool ScanRow::scans_places(std::size_t fold) const {
  const Fold& f = tile_.fold_of(fold);
  return f.place && !f.commutative;
}

/// A row of places none of whose values is better than what comes before it: all of it has that
/// place. Of n rows of random values about log(n) have a better one.
ValueId ScanRow::scan_places(std::size_t fold, const Partial& elements, int width,
                             std::int64_t first, RowCarry& carry) {
  const Partial before = tile_.lift(fold, *settled(fold, carry));
  const ValueId better =
      tile_.changes_place(fold, before, b_.widen(elements.fields[0], width), reverse_[fold]);
  const auto with_carry = [&](ValueId values, const Partial& next) {
    Builder::Values all = {values};
    for (const ValueId field : next.fields) all.push_back(b_.splat(field));
    return all;
  };
  const auto scanned = [&] {
    RowCarry through{.state = before};
    const ValueId values = scan(fold, elements, width, first, through);
    return with_carry(values, tile_.lift(fold, *settled(fold, through)));
  };
  const auto of_before = [&] {
    Partial same = before;
    for (ValueId& field : same.fields) field = b_.widen(b_.splat(field), width);
    return with_carry(tile_.finalize(fold, same), before);
  };
  const Builder::Values values = b_.branch(b_.any(better), scanned, of_before);
  carry = {.state = before};
  carry.state->fields.assign(values.begin() + 1, values.end());
  return values[0];
}

/// Whether every lane that has elements follows lanes that have some.
bool ScanRow::fills_lanes(std::size_t fold, const LaneScan& scan) const {
  return scan.unit == 1 && !scan.reverse && !tile_.is_filtered(fold);
}

/// Of states (value, index) that are merged in order. Values are scanned alone. A lane whose value
/// is better than all before it has the index of all lanes from it up to the next such lane.
Partial ScanRow::places_across_lanes(std::size_t fold, const Partial& total, const LaneScan& scan) {
  const Op better = *tile_.fold_of(fold).place;
  const ValueId value = b_.splat(total.fields[0]), index = b_.splat(total.fields[1]);
  const ValueId lane = b_.lane();
  ValueId best = value;
  for (const int distance : shifts(scan)) {
    const ValueId merged = b_.compute(better, {best, b_.shuffle_up(best, distance)});
    best = scan.before_last == kNoValue
               ? merged
               : b_.select(b_.compute(Op::ge, {scan.before_last, b_.i32(distance * scan.width)}),
                           merged, best);
  }
  const ValueId before = b_.shuffle_up(best, 1);
  const ValueId first = tile_.is_better(fold, value, before);
  const ValueId begins = scan.before_last == kNoValue ? b_.compute(Op::eq, {lane, b_.i32(0)})
                                                      : b_.lt(scan.before_last, b_.i32(scan.width));
  ValueId source = b_.select(b_.compute(Op::bit_or, {first, begins}), lane, b_.i32(-1));
  for (int distance = 1; distance < kWarpWidth; distance *= 2)
    source = b_.compute(Op::max, {source, b_.shuffle_up(source, distance)});
  Partial scanned = total;
  scanned.fields = {best, b_.shuffle_from(index, source)};
  return scanned;
}

}  // namespace chainfold::codegen
