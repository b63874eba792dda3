// The last rows of everything, which ends anywhere; ScanTile's part of it.
#include <utility>

#include "chainfold/codegen/lower_scan_tile.hpp"

namespace chainfold::codegen {

std::vector<Loaded> ScanTile::load_ending(ValueId begin, ValueId count, ValueId place, int rows) {
  const int width = plan_.load_width;
  const ValueId loads = b_.div(count, b_.i64(width));
  const ValueId behind = b_.mul(loads, b_.i64(width));
  const ValueId rest = b_.convert(b_.sub(count, behind), DType::i32);
  // All lanes have the elements of the load that is not all there; one of them is its own.
  std::vector<Builder::Values> parts(graph_.inputs.size());
  for (int i = 0; i + 1 < width; ++i) {
    const Address at{.base = b_.add(b_.add(begin, behind), b_.i64(i)), .group = 1, .stride = 0};
    const Loaded part = tile_.load(at, 1, b_.splat(b_.lt(b_.i32(i), rest)), kNoValue);
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
  const ValueId last = b_.convert(loads, DType::i32);
  std::vector<Loaded> loaded;
  for (int r = 0; r < rows; ++r) {
    const ValueId number = b_.add(b_.lane(), b_.i32(r * kWarpWidth));
    Loaded row = tile_.load({.base = b_.add(begin, b_.i64(r * row_elements()))}, width,
                            b_.lt(number, last), row_position(place, r));
    const ValueId ending = b_.compute(Op::eq, {number, last});
    for (std::size_t input = 0; input < ends.size(); ++input) {
      if (ends[input] != kNoValue)
        row.inputs[input] = b_.select(ending, ends[input], row.inputs[input]);
    }
    mark_existing(row, r, count);
    loaded.push_back(std::move(row));
  }
  return loaded;
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
