// The last rows of everything, which ends anywhere; ScanTile's part of it.
#include <utility>

#include "chainfold/codegen/lower_scan_tile.hpp"

namespace chainfold::codegen {

ScanTile::Ending ScanTile::ending_of(ValueId count) {
  const ValueId width = b_.i64(plan_.load_width);
  const ValueId exist = b_.compute(Op::max, {b_.i64(0), count});
  const ValueId loads = b_.div(exist, width);
  return {.loads = b_.convert(loads, DType::i32),
          .rest = b_.convert(b_.sub(exist, b_.mul(loads, width)), DType::i32)};
}

ValueId ScanTile::behind_loads(ValueId begin, const Ending& ending) {
  return b_.add(begin, b_.mul(b_.convert(ending.loads, DType::i64), b_.i64(plan_.load_width)));
}

ValueId ScanTile::loads_of_row(int r) { return b_.add(b_.lane(), b_.i32(r * kWarpWidth)); }

std::vector<Loaded> ScanTile::load_ending(ValueId begin, ValueId count, ValueId place, int rows) {
  const int width = plan_.load_width;
  const Ending ending = ending_of(count);
  const ValueId behind = behind_loads(begin, ending);
  // All lanes have the elements of the load that is not all there; one of them is its own.
  std::vector<Builder::Values> parts(graph_.inputs.size());
  for (int i = 0; i + 1 < width; ++i) {
    const Address at{.base = b_.add(behind, b_.i64(i)), .group = 1, .stride = 0};
    const Loaded part = tile_.load(at, 1, b_.splat(b_.lt(b_.i32(i), ending.rest)), kNoValue);
    for (std::size_t input = 0; input < parts.size(); ++input) {
      if (part.inputs[input] != kNoValue) parts[input].push_back(part.inputs[input]);
    }
  }
  std::vector<ValueId> ends;
  for (std::size_t input = 0; input < parts.size(); ++input) {
    if (!parts[input].empty())
      parts[input].push_back(b_.splat(b_.constant(graph_.inputs[input].type, 0)));
    ends.push_back(parts[input].empty() ? kNoValue : b_.concat(std::move(parts[input])));
  }
  std::vector<Loaded> loaded;
  for (int r = 0; r < rows; ++r) {
    const ValueId number = loads_of_row(r);
    Loaded row = tile_.load({.base = b_.add(begin, b_.i64(r * row_elements()))}, width,
                            b_.lt(number, ending.loads),
                            place == kNoValue ? kNoValue : row_position(place, r));
    const ValueId own = b_.compute(Op::eq, {number, ending.loads});
    for (std::size_t input = 0; input < ends.size(); ++input) {
      if (ends[input] != kNoValue)
        row.inputs[input] = b_.select(own, ends[input], row.inputs[input]);
    }
    mark_existing(row, r, count);
    loaded.push_back(std::move(row));
  }
  return loaded;
}

void ScanTile::store_existing(const Loaded& row, int r, ValueId at,
                              const std::vector<ValueId>& values, ValueId extent, Ending& ending) {
  const std::vector<ValueId> outputs = tile_.finish_elements(row, values, extent);
  const ValueId number = loads_of_row(r);
  Loaded there = row;
  there.mask = b_.lt(number, ending.loads);
  store_values(there, at, outputs, false);
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

void ScanTile::mark_existing(Loaded& row, int r, ValueId count) {
  Builder::Values slots;
  for (int i = 0; i < row.width; ++i) slots.push_back(b_.i32(i));
  const ValueId slot = b_.add(b_.mul(b_.lane(), b_.i32(row.width)), b_.concat(std::move(slots)));
  const ValueId left = b_.convert(b_.sub(count, b_.i64(r * row_elements())), DType::i32);
  row.valid = b_.lt(slot, left);
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
