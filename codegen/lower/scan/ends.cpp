// Rows that begin or end within a load: the last ones of the whole input and of blocks, a segment's
// first and last ones; ScanTile's part of them.
#include <utility>

#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

ScanTile::Ending ScanTile::ending_of(ValueId count, ValueId before) {
  const ValueId width = b_.i64(plan_.load_width);
  const ValueId exist = b_.compute(Op::max, {b_.i64(0), count});
  const ValueId loads = b_.div(exist, width);
  return {.loads = b_.convert(loads, DType::i32),
          .rest = b_.convert(b_.sub(exist, b_.mul(loads, width)), DType::i32),
          .before = before};
}

ValueId ScanTile::whole_loads(const Ending& ending, int r, ValueId number) {
  const ValueId there = b_.lt(number, ending.loads);
  if (ending.before == kNoValue || r > 0) return there;
  return b_.both(there, b_.compute(Op::ge, {number, b_.min(ending.before, b_.i32(1))}));
}

ValueId ScanTile::has_first(const Ending& ending, int i) {
  const ValueId begins = b_.both(b_.compute(Op::gt, {ending.before, b_.i32(0)}),
                                 b_.compute(Op::le, {ending.before, b_.i32(i)}));
  return b_.both(b_.splat(begins), b_.compute(Op::eq, {b_.lane(), b_.i32(0)}));
}

ValueId ScanTile::behind_loads(ValueId begin, const Ending& ending) {
  return b_.add(begin, b_.mul(b_.convert(ending.loads, DType::i64), b_.i64(plan_.load_width)));
}

ValueId ScanTile::loads_of_row(int r) { return b_.add(b_.lane(), b_.i32(r * kWarpWidth)); }

std::vector<Loaded> ScanTile::load_ending(ValueId begin, ValueId count, ValueId place, int rows,
                                          ValueId before) {
  const int width = plan_.load_width;
  const Ending ending = ending_of(count, before);
  // A load of each input that is put together from elements [from, to), those that `there` names.
  const auto put_together = [&](ValueId at, int from, int to, auto there) {
    std::vector<Builder::Values> parts(graph_.inputs.size());
    const auto add_zero = [&] {
      for (std::size_t input = 0; input < parts.size(); ++input) {
        if (tile_.uses_input(input))
          parts[input].push_back(b_.splat(b_.constant(graph_.inputs[input].type, 0)));
      }
    };
    for (int i = 0; i < from; ++i) add_zero();
    for (int i = from; i < to; ++i) {
      const Address place{.base = b_.add(at, b_.i64(i)), .group = 1, .stride = 0};
      const Loaded part = tile_.load(place, 1, there(i), kNoValue);
      for (std::size_t input = 0; input < parts.size(); ++input) {
        if (part.inputs[input] != kNoValue) parts[input].push_back(part.inputs[input]);
      }
    }
    for (int i = to; i < width; ++i) add_zero();
    std::vector<ValueId> values;
    for (Builder::Values& of_input : parts)
      values.push_back(of_input.empty() ? kNoValue : b_.concat(std::move(of_input)));
    return values;
  };
  // All lanes have the elements of the load that is not all there; one of them is its own.
  const std::vector<ValueId> ends =
      put_together(behind_loads(begin, ending), 0, width - 1,
                   [&](int i) { return b_.splat(b_.lt(b_.i32(i), ending.rest)); });
  std::vector<ValueId> begins;
  if (before != kNoValue)
    begins = put_together(begin, 1, width, [&](int i) { return has_first(ending, i); });
  std::vector<Loaded> loaded;
  for (int r = 0; r < rows; ++r) {
    const ValueId number = loads_of_row(r);
    Loaded row = tile_.load({.base = b_.add(begin, b_.i64(r * row_elements()))}, width,
                            whole_loads(ending, r, number),
                            place == kNoValue ? kNoValue : row_position(place, r));
    const auto take = [&](const std::vector<ValueId>& values, ValueId own) {
      for (std::size_t input = 0; input < values.size(); ++input) {
        if (values[input] != kNoValue)
          row.inputs[input] = b_.select(own, values[input], row.inputs[input]);
      }
    };
    take(ends, b_.compute(Op::eq, {number, ending.loads}));
    if (r == 0 && before != kNoValue) take(begins, has_first(ending, width - 1));
    mark_existing(row, r, count, before);
    loaded.push_back(std::move(row));
  }
  return loaded;
}

std::vector<Loaded> ScanTile::load_whole(ValueId begin, ValueId count, ValueId place) {
  std::vector<Loaded> rows = load_ending(begin, count, place, plan_.depth);
  for (Loaded& row : rows) row.forget_what_exists();
  return rows;
}

void ScanTile::store_existing(const Loaded& row, int r, ValueId at, const Broadcasts& values,
                              ValueId extent, Ending& ending) {
  const std::vector<ValueId> outputs = tile_.finish_elements(row, values, extent);
  const ValueId number = loads_of_row(r);
  Loaded there = row;
  there.mask = whole_loads(ending, r, number);
  store_values(there, at, outputs, false);
  for (int i = 1; i < row.width && r == 0 && ending.before != kNoValue; ++i) {
    const ValueId first_load = has_first(ending, i);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] == kNoValue) continue;
      b_.store(static_cast<int>(graph_.inputs.size() + o),
               {.base = b_.add(at, b_.i64(i)), .group = 1, .stride = 0},
               b_.extract(b_.widen(outputs[o], row.width), i), first_load);
    }
  }
  const ValueId own = b_.compute(Op::eq, {number, ending.loads});
  const bool first = ending.values.empty();
  ending.values.resize(outputs.size(), kNoValue);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == kNoValue) continue;
    const ValueId value = b_.widen(outputs[o], row.width);
    ending.values[o] = first ? value : b_.select(own, value, ending.values[o]);
  }
}

void ScanTile::store_rest(ValueId begin, int rows, const Ending& ending) {
  const int width = plan_.load_width;
  const ValueId behind = behind_loads(begin, ending);
  const ValueId own =
      b_.both(b_.splat(b_.lt(ending.loads, b_.i32(rows * kWarpWidth))),
              b_.compute(Op::eq, {b_.lane(), b_.rem(ending.loads, b_.i32(kWarpWidth))}));
  for (std::size_t o = 0; o < ending.values.size(); ++o) {
    for (int i = 0; i + 1 < width && ending.values[o] != kNoValue; ++i) {
      b_.store(static_cast<int>(graph_.inputs.size() + o),
               {.base = b_.add(behind, b_.i64(i)), .group = 1, .stride = 0},
               b_.extract(ending.values[o], i),
               b_.both(own, b_.splat(b_.lt(b_.i32(i), ending.rest))));
    }
  }
}

void ScanTile::mark_existing(Loaded& row, int r, ValueId count, ValueId before) {
  Builder::Values slots;
  for (int i = 0; i < row.width; ++i) slots.push_back(b_.i32(i));
  const ValueId slot = b_.add(b_.mul(b_.lane(), b_.i32(row.width)), b_.concat(std::move(slots)));
  const ValueId left = b_.convert(b_.sub(count, b_.i64(r * row_elements())), DType::i32);
  row.valid = b_.lt(slot, left);
  if (before != kNoValue && r == 0)
    row.valid = b_.both(row.valid, b_.compute(Op::ge, {slot, before}));
  row.zeros = true;
  row.mask = kNoValue;
}

void ScanTile::keep_existing(std::vector<Loaded>& rows, ValueId count) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    mark_existing(rows[r], static_cast<int>(r), count);
    for (std::size_t input = 0; input < rows[r].inputs.size(); ++input) {
      ValueId& value = rows[r].inputs[input];
      if (value != kNoValue)
        value = b_.select(rows[r].valid, value, b_.constant(graph_.inputs[input].type, 0));
    }
  }
}

}  // namespace chainfold::codegen
