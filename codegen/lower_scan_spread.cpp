// What elements are told of their segment's fold, where segments begin and end anywhere in rows;
// ScanTile's part of it.
#include <numeric>

#include "chainfold/codegen/lower_scan_tile.hpp"

namespace chainfold::codegen {

/// Before: rows begin at a head, and a lane's elements hold one segment's end at most. A lane keeps
/// the value at that end; its elements are of the segment that ends there or of the next one, whose
/// ends are in lanes that positions tell.
void ScanTile::spread_ends(std::vector<ValueId>& values) {
  const int width = plan_.load_width;
  const auto size = static_cast<std::int32_t>(segment_);
  const auto row = static_cast<std::int32_t>(row_elements());
  const int step = std::gcd(size, width);  // ends lie before multiples of it
  const ValueId slot = b_.mul(b_.lane(), b_.i32(width));
  std::vector<ValueId> ends, left;  // of a lane; from its first element to its segment's last one
  for (std::size_t r = 0; r < values.size(); ++r) {
    const ValueId first = b_.add(slot, b_.i32(static_cast<std::int32_t>(r) * row));
    left.push_back(b_.sub(b_.i32(size - 1), b_.rem(first, b_.i32(size))));
    ValueId end = kNoValue;
    for (int i = step - 1; i < width; i += step) {
      const ValueId value = b_.extract(values[r], i);
      end =
          end == kNoValue ? value : b_.select(b_.compute(Op::eq, {left[r], b_.i32(i)}), value, end);
    }
    ends.push_back(end);
  }
  // What the lane holds that lies `distance` elements behind the lane's first one, at most `most`.
  const auto end_behind = [&](std::size_t r, ValueId distance, std::int32_t most) {
    const ValueId load = b_.div(b_.add(slot, distance), b_.i32(width));
    const ValueId rows = b_.div(load, b_.i32(kWarpWidth));
    const ValueId lane = b_.compute(Op::bit_and, {load, b_.i32(kWarpWidth - 1)});
    ValueId end = b_.shuffle_from(ends[r], lane);
    for (std::int32_t k = 1; k <= (row - width + most) / row && r + k < ends.size(); ++k) {
      const ValueId of_row = b_.shuffle_from(ends[r + static_cast<std::size_t>(k)], lane);
      end = b_.select(b_.compute(Op::eq, {rows, b_.i32(k)}), of_row, end);
    }
    return end;
  };
  for (std::size_t r = 0; r < values.size(); ++r) {
    const ValueId own = end_behind(r, left[r], size - 1);
    Builder::Values parts(static_cast<std::size_t>(width), own);
    if (step < width) {
      const ValueId next = end_behind(r, b_.add(left[r], b_.i32(size)), width - 1 + size);
      for (int i = step; i < width; ++i) {
        const ValueId is_own = b_.compute(Op::le, {b_.i32(i), left[r]});
        parts[static_cast<std::size_t>(i)] = b_.select(is_own, own, next);
      }
    }
    values[r] = b_.concat(std::move(parts));
  }
}

}  // namespace chainfold::codegen
