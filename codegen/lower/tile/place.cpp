// A part of TileLowering: folds whose state is the best value and the place of its first element
// (Fold::place).
//
// Within a load. A lane's elements follow each other, so that the first of two is the better one
// unless the second is better by itself. Their places are small constants until the load's index is
// added. An integer of up to 16 bits is one with its place, in the bits below it.
//
// In loops of vectors. A batch's best value costs one operation an element. Only where it is better
// than the best one so far its place is looked for. Of n batches of random values that happens
// about log(n) times. Then all lanes have the state of all lanes, so that none of them looks for a
// place of its own.
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

bool TileLowering::has_place(std::size_t fold) const {
  return fold_of(fold).place && graph_.node(operands_of(fold)[1]).kind == NodeKind::index;
}

ValueId TileLowering::is_better(std::size_t fold, ValueId value, ValueId other) {
  const Op not_better = *fold_of(fold).place == Op::max ? Op::le : Op::ge;
  const ValueId better = b_.compute(Op::bit_not, {b_.compute(not_better, {value, other})});
  return is_float(b_.type(value).elem) ? b_.both(better, b_.compute(Op::eq, {other, other}))
                                       : better;
}

Partial TileLowering::locate_by_keys(std::size_t fold, const Loaded& tile, ValueId value,
                                     ValueId filter) {
  const Fold& f = fold_of(fold);
  const bool largest = *f.place == Op::max;
  const int bits = ceil_log2(tile.width), last = (1 << bits) - 1;
  Builder::Values places;
  for (int e = 0; e < tile.width; ++e) places.push_back(b_.i32(largest ? last - e : e));
  ValueId keys = b_.compute(Op::mul, {b_.convert(value, DType::i32), b_.i32(1 << bits)});
  keys = b_.add(keys, b_.concat(std::move(places)));
  using Limits = std::numeric_limits<std::int32_t>;
  const ValueId none = b_.i32(largest ? Limits::min() : Limits::max());
  if (filter != kNoValue) keys = b_.select(filter, keys, none);
  keys = combine_halves(*f.place, keys);
  const ValueId place = b_.compute(Op::bit_and, {keys, b_.i32(last)});
  const ValueId best = b_.convert(b_.compute(Op::shr, {keys, b_.i32(bits)}), f.operands[0]);
  const ValueId ahead = largest ? b_.sub(b_.i32(last), place) : place;
  const ValueId index = b_.add(tile.position, b_.convert(ahead, DType::i64));
  Partial state{.fields = {best, index}, .lifted = true};
  if (filter == kNoValue) return state;
  return keep_where(fold, std::move(state), b_.compute(Op::ne, {keys, none}));
}

Partial TileLowering::locate(std::size_t fold, const Loaded& tile, ValueId value, ValueId filter) {
  const Fold& f = fold_of(fold);
  if (is_integer(f.operands[0]) && size_of(f.operands[0]) <= 2)
    return locate_by_keys(fold, tile, value, filter);
  struct Best {
    ValueId value, place, counts;
  };
  std::vector<Best> row;
  for (int e = 0; e < tile.width; ++e) {
    row.push_back({.value = b_.extract(value, e),
                   .place = b_.i32(e),
                   .counts = filter == kNoValue ? kNoValue : b_.extract(filter, e)});
  }
  const auto first_of = [&](const Best& a, const Best& b) -> Best {
    ValueId later = is_better(fold, b.value, a.value);
    ValueId counts = kNoValue;
    if (a.counts != kNoValue) {
      const ValueId none = b_.compute(Op::bit_not, {a.counts});
      later = b_.both(b_.compute(Op::bit_or, {later, none}), b.counts);
      counts = b_.compute(Op::bit_or, {a.counts, b.counts});
    }
    return {b_.select(later, b.value, a.value), b_.select(later, b.place, a.place), counts};
  };
  while (row.size() > 1) {
    std::vector<Best> next;
    for (std::size_t i = 0; i + 1 < row.size(); i += 2)
      next.push_back(first_of(row[i], row[i + 1]));
    if (row.size() % 2 == 1) next.push_back(row.back());
    row = std::move(next);
  }
  const Best& best = row.front();
  const ValueId index = b_.add(tile.position, b_.convert(best.place, DType::i64));
  Partial state{.fields = {best.value, index}, .lifted = true};
  return best.counts == kNoValue ? state : keep_where(fold, std::move(state), best.counts);
}

ValueId TileLowering::changes_place(std::size_t fold, const Partial& state, ValueId value,
                                    bool ahead) {
  const bool largest = *fold_of(fold).place == Op::max, floats = is_float(b_.type(value).elem);
  const int width = b_.type(value).width;
  const ValueId best = b_.widen(state.fields[0], width);
  // Of equal ones the earlier one counts. NaN is not worse than anything, and nothing is better.
  ValueId better =
      b_.compute(largest ? Op::le : Op::ge, {ahead ? best : value, ahead ? value : best});
  if (!ahead) better = b_.compute(Op::bit_not, {better});
  if (floats && ahead)
    better = b_.compute(Op::bit_or, {better, b_.compute(Op::ne, {value, value})});
  better = combine_halves(Op::bit_or, better);
  const ValueId own = state.fields[0];
  if (floats && !ahead) better = b_.both(better, b_.compute(Op::eq, {own, own}));
  return b_.compute(Op::bit_or, {better, b_.lt(state.fields[1], b_.i64(0))});  // or none is there
}

Partial TileLowering::with_better_place(std::size_t fold, const Partial& before,
                                        const Partial& lanes) {
  const auto of_lanes = [&](Builder::Values fields) {
    for (ValueId& field : fields) field = b_.splat(field);
    return fields;
  };
  Partial state = before;
  state.fields = b_.branch(
      b_.any(changes_place(fold, before, lanes.fields[0])),
      [&] { return of_lanes(merge(fold, before, of_warp(fold, lanes, 1)).fields); },
      [&] { return of_lanes(before.fields); });
  return state;
}

bool TileLowering::is_screened(std::size_t fold) const {
  return plan_.hints.screens && has_place(fold);
}

Partial TileLowering::screen(std::size_t fold, const std::vector<Loaded>& batch,
                             const Before& before) {
  const Fold& f = fold_of(fold);
  const Op better = *f.place;
  const Node& node = fold_node(fold);
  const DType type = f.operands[0];
  const bool floats = is_float(type);
  const int width = batch.front().width;
  const Partial& state = before.states[fold];
  const ValueId best = state.fields[0], best_at = state.fields[1];

  const auto of_lane = [&](Op op, ValueId value) {  // its elements
    if (width == 1) return value;
    std::vector<ValueId> elements;
    for (int e = 0; e < width; ++e) elements.push_back(b_.extract(value, e));
    return combine_all(op, std::move(elements));
  };
  // NaN is one value.
  const auto are_same = [&](ValueId a, ValueId b) {
    const ValueId same = b_.compute(Op::eq, {a, b});
    if (!floats) return same;
    const ValueId nan_a = b_.compute(Op::ne, {a, a}), nan_b = b_.compute(Op::ne, {b, b});
    return b_.compute(Op::bit_or, {same, b_.compute(Op::bit_and, {nan_a, nan_b})});
  };

  // Of each load the values, and which of them count.
  std::vector<ValueId> values, counted;
  for (const Loaded& tile : batch) {
    Scope scope = scope_of(tile);
    ValueId value = node_value(operands_of(fold)[0], scope);
    const ValueId filter = node.filter == kNoNode ? kNoValue : node_value(node.filter, scope);
    const ValueId counts = b_.both(b_.both(tile.mask, tile.valid), filter);
    if (counts != kNoValue) value = b_.select(counts, value, b_.constant(type, f.init[0]));
    values.push_back(value);
    counted.push_back(counts);
  }

  // Of each run of loads its best value, and whether that changes the state.
  struct Run {
    std::size_t first = 0;
    ValueId from = kNoValue, best = kNoValue;
  };
  const std::size_t each =
      before.runs.loads > 0 ? static_cast<std::size_t>(before.runs.loads) : batch.size();
  std::vector<Run> runs;
  ValueId changes = kNoValue;
  for (std::size_t first = 0; first < batch.size(); first += each) {
    Run run{.first = first, .from = before.from};
    if (first > 0) {
      const auto number = static_cast<std::int64_t>(first / each);
      run.from = b_.add(before.from, b_.mul(before.runs.apart, b_.i64(number)));
    }
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    run.best =
        of_lane(better, combine_all(better, {begin, begin + static_cast<std::ptrdiff_t>(each)}));
    // Of values as good the first counts, also where nothing was seen before.
    const ValueId same =
        f.commutative
            ? b_.compute(Op::bit_and, {are_same(run.best, best), b_.lt(run.from, best_at)})
            : b_.lt(best_at, b_.i64(0));
    const ValueId wins = b_.compute(Op::bit_or, {is_better(fold, run.best, best), same});
    changes = changes == kNoValue ? wins : b_.compute(Op::bit_or, {changes, wins});
    runs.push_back(run);
  }

  const auto look_for_places = [&]() -> Builder::Values {
    Builder::Values elements;
    for (int e = 0; e < width; ++e) elements.push_back(b_.i32(e));
    const ValueId lane = b_.mul(b_.lane(), b_.i32(width));
    const ValueId offset = width == 1 ? lane : b_.add(lane, b_.concat(std::move(elements)));
    const ValueId nowhere = b_.i32(std::numeric_limits<std::int32_t>::max());
    Partial merged = state;
    for (const Run& run : runs) {
      const ValueId value = combine_group(better, run.best, kWarpWidth);
      const ValueId wanted = b_.widen(value, width);
      ValueId place = b_.widen(nowhere, width);
      for (std::size_t i = each; i-- > 0;) {  // the first one last, so that it stays
        const ValueId here = values[run.first + i], counts = counted[run.first + i];
        const ValueId is_it = b_.both(are_same(here, wanted), counts);
        const int ahead = static_cast<int>(i) * kWarpWidth * width;
        place = b_.select(is_it, b_.add(offset, b_.i32(ahead)), place);
      }
      place = combine_group(Op::min, of_lane(Op::min, place), kWarpWidth);
      const ValueId index =
          b_.select(b_.lt(place, nowhere), b_.add(run.from, b_.convert(place, DType::i64)),
                    b_.constant(DType::i64, f.init[1]));
      merged = merge(fold, merged, {.fields = {value, index}, .lifted = true});
    }
    return merged.fields;
  };
  const Builder::Values fields =
      b_.branch(b_.any(changes), look_for_places, [&] { return state.fields; });
  return {.fields = fields, .lifted = true, .complete = !f.commutative, .absorbed = true};
}

}  // namespace chainfold::codegen
