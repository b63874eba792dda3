// Broadcasts of a segment's fold to its elements, where segments begin and end anywhere in rows;
// ScanTile's part of it.
//
// A lane's elements hold one segment's end at most. A lane keeps the value at that end. Its
// elements are of the segment that ends there, or further on, or of the next one. A warp's run of
// whole segments finds their ends in other lanes, which positions tell. The warps of a block
// exchange what they share through shared memory, a place a segment of the block.
#include <numeric>
#include <string>

#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

ValueId ScanTile::slots_of_row(std::size_t r) {
  const ValueId row =
      b_.i32(static_cast<std::int32_t>(static_cast<std::int64_t>(r) * row_elements()));
  const auto of_lane = [&] { return b_.mul(b_.lane(), b_.i32(plan_.load_width)); };
  return slot_ == kNoValue ? b_.add(of_lane(), row) : b_.add(b_.add(slot_, row), of_lane());
}

ValueId ScanTile::left_of_segment(ValueId first) {
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_)), one = b_.i32(1);
  return b_.sub(b_.sub(size, one), b_.rem(first, size));
}

ValueId ScanTile::end_of_lane(ValueId values, ValueId left, int width) {
  const int step = std::gcd(static_cast<int>(segment_), width);  // ends lie before multiples of it
  ValueId end = kNoValue;
  for (int i = step - 1; i < width; i += step) {
    const ValueId value = b_.extract(values, i);
    end = end == kNoValue ? value : b_.select(b_.compute(Op::eq, {left, b_.i32(i)}), value, end);
  }
  return end;
}

ValueId ScanTile::broadcast_values(ValueId own, ValueId next, ValueId left, int width) {
  Builder::Values parts(static_cast<std::size_t>(width), own);
  for (int i = std::gcd(static_cast<int>(segment_), width); i < width; ++i) {
    const ValueId is_own = b_.compute(Op::le, {b_.i32(i), left});
    parts[static_cast<std::size_t>(i)] = b_.select(is_own, own, next);
  }
  return b_.concat(std::move(parts));
}

/// Before: rows begin at a head.
void ScanTile::spread_in_warp(std::vector<Broadcasts>& rows, std::size_t f) {
  const int width = plan_.load_width;
  const auto size = static_cast<std::int32_t>(segment_);
  const auto row = static_cast<std::int32_t>(row_elements());
  const ValueId slot = b_.mul(b_.lane(), b_.i32(width));
  std::vector<ValueId> ends, left;  // of a lane; from its first element to its segment's last one
  for (std::size_t r = 0; r < rows.size(); ++r) {
    left.push_back(left_of_segment(slots_of_row(r)));
    ends.push_back(end_of_lane(rows[r].running[f], left[r], width));
  }
  // What the lane holds that lies `distance` elements behind the lane's first one, at most `most`.
  const auto end_behind = [&](std::size_t r, ValueId distance, std::int32_t most) {
    const ValueId load = b_.div(b_.add(slot, distance), b_.i32(width));
    const ValueId further = b_.div(load, b_.i32(kWarpWidth));
    const ValueId lane = b_.compute(Op::bit_and, {load, b_.i32(kWarpWidth - 1)});
    ValueId end = b_.shuffle_from(ends[r], lane);
    for (std::int32_t k = 1; k <= (row - width + most) / row && r + k < ends.size(); ++k) {
      const ValueId of_row = b_.shuffle_from(ends[r + static_cast<std::size_t>(k)], lane);
      end = b_.select(b_.compute(Op::eq, {further, b_.i32(k)}), of_row, end);
    }
    return end;
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ValueId own = end_behind(r, left[r], size - 1);
    ValueId next = kNoValue;
    if (size % width != 0) next = end_behind(r, b_.add(left[r], b_.i32(size)), width - 1 + size);
    rows[r].whole[f] = broadcast_values(own, next, left[r], width);
  }
}

/// Before: rows begin at slot_ of the block, whose first slot is a head.
void ScanTile::put_ends(const std::vector<Broadcasts>& rows, std::size_t f, int array) {
  const int width = plan_.load_width;
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_));
  const ValueId segments = b_.i32(static_cast<std::int32_t>(plan_.scan.tile_segments));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ValueId first = slots_of_row(r), left = left_of_segment(first);
    const ValueId segment = b_.div(first, size);
    const ValueId ends = b_.both(b_.lt(left, b_.i32(width)), b_.lt(segment, segments));
    b_.shared_store(array, {.base = b_.i64(0), .group = 1, .stride = 0, .offset = segment},
                    end_of_lane(rows[r].running[f], left, width), ends);
  }
}

/// Before: all of the block's ends are put.
void ScanTile::get_ends(std::vector<Broadcasts>& rows, std::size_t f, int array) {
  const int width = plan_.load_width;
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_));
  const ValueId last = b_.i32(static_cast<std::int32_t>(plan_.scan.tile_segments - 1));
  // What is behind the last segment belongs to none.
  const auto end_of = [&](ValueId segment) {
    return b_.shared_load(
        array, {.base = b_.i64(0), .group = 1, .stride = 0, .offset = b_.min(segment, last)});
  };
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const ValueId first = slots_of_row(r), segment = b_.div(first, size);
    const ValueId own = end_of(segment);
    const ValueId next = segment_ % width != 0 ? end_of(b_.add(segment, b_.i32(1))) : kNoValue;
    rows[r].whole[f] = broadcast_values(own, next, left_of_segment(first), width);
  }
}

void ScanTile::spread_ends(std::vector<Broadcasts>& rows) {
  std::vector<std::size_t> folds;
  for (std::size_t f = 0; f < spreads_.size(); ++f)
    if (spreads_[f]) folds.push_back(f);
  if (!begins_anywhere()) {
    for (const std::size_t f : folds) spread_in_warp(rows, f);
    return;
  }
  if (folds.empty()) return;
  if (ends_ < 0) {
    std::vector<SharedArray>& shared = b_.shared();
    ends_ = static_cast<int>(shared.size());
    for (std::size_t i = 0; i < folds.size(); ++i)
      shared.push_back({"end_" + std::to_string(i), b_.type(rows[0].running[folds[i]]).elem,
                        static_cast<int>(plan_.scan.tile_segments)});
  }
  for (std::size_t i = 0; i < folds.size(); ++i)
    put_ends(rows, folds[i], ends_ + static_cast<int>(i));
  b_.barrier();
  for (std::size_t i = 0; i < folds.size(); ++i)
    get_ends(rows, folds[i], ends_ + static_cast<int>(i));
}

}  // namespace chainfold::codegen
