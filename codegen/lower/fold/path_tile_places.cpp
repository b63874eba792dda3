// A part of PathTile: how many elements of its segment come before an element, and how many behind
// it. As elements are counted: where they are counted from the other end, its index is the latter.
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_tile.hpp"
#include "chainfold/codegen/lower/tile/lane_scans.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

void PathTile::find_ahead(const Span& span) {
  if (asks_before_) {
    const ValueId of_first = b_.shuffle_from(span.early[0], b_.splat(b_.i32(0)));
    ahead_ = b_.select(goes_on_, b_.sub(in_all(span.element), of_first), b_.i64(0));
  }
  if (!asks_behind_) return;
  const ValueId known = b_.min(of_all(span.next_segment), b_.sub(segments_, b_.i64(1)));
  const ValueId next_element = in_all(span.next_element);
  const ValueId begin = bounds_.begin(known), end = bounds_.end(known);
  const ValueId goes_on =
      b_.both(b_.lt(span.next_segment, near_segments_), b_.lt(begin, next_element));
  const ValueId left = b_.compute(Op::max, {b_.i64(0), b_.sub(end, next_element)});
  beyond_ = b_.select(goes_on, left, b_.i64(0));
}

void PathTile::find_places(ValueId row, Row& loaded, ValueId head_at) {
  if (asks_before_) find_last(row, loaded, head_at);
  if (asks_behind_) find_next(row, loaded);
}

void PathTile::find_last(ValueId row, Row& loaded, ValueId head_at) {
  const ValueId first = first_of_lane(row);
  ValueId last = b_.i32(-1);
  for (int i = 0; i < elements_a_lane(plan_); ++i)
    last = b_.select(loaded.heads[static_cast<std::size_t>(i)], b_.add(first, b_.i32(i)), last);
  const ValueId reached = largest_so_far(b_, b_.splat(last));
  const ValueId others =
      b_.select(b_.compute(Op::eq, {b_.lane(), b_.i32(0)}), b_.i32(-1), b_.shuffle_up(reached, 1));
  loaded.place_before = b_.compute(Op::max, {others, head_at});
  loaded.place_behind =
      b_.compute(Op::max, {head_at, b_.shuffle_from(reached, b_.splat(b_.i32(kWarpWidth - 1)))});
}

ValueId PathTile::begins_in_tile(ValueId row, int element, const Row& loaded) {
  const ValueId place = b_.add(first_of_lane(row), b_.i32(element));
  return b_.both(loaded.heads[static_cast<std::size_t>(element)], b_.lt(place, behind_));
}

void PathTile::find_next(ValueId row, Row& loaded) {
  const ValueId first = first_of_lane(row);
  ValueId next = behind_;
  for (int i = elements_a_lane(plan_) - 1; i >= 0; --i)
    next = b_.select(begins_in_tile(row, i, loaded), b_.add(first, b_.i32(i)), next);
  ValueId reached = b_.splat(next);
  for (int distance = 1; distance < kWarpWidth; distance *= 2)
    reached = b_.min(reached, b_.shuffle_down(reached, distance));
  const ValueId is_last = b_.compute(Op::eq, {b_.lane(), b_.i32(kWarpWidth - 1)});
  loaded.place_after = b_.select(is_last, behind_, b_.shuffle_down(reached, 1));
}

ValueId PathTile::before_each(ValueId row, int load, const Row& loaded) {
  const ValueId first = first_of_lane(row);
  ValueId last = loaded.place_before;
  Builder::Values before;
  for (int i = 0; i < load + plan_.load_width; ++i) {
    const ValueId place = b_.add(first, b_.i32(i));
    last = b_.select(loaded.heads[static_cast<std::size_t>(i)], place, last);
    if (i < load) continue;
    // Where no segment has begun in the tile the elements are of the one from before.
    const ValueId none = b_.lt(last, b_.i32(0));
    const ValueId within = i64_of(b_.sub(place, b_.select(none, first_, last)));
    before.push_back(b_.add(within, b_.select(none, ahead_, b_.i64(0))));
  }
  return b_.concat(std::move(before));
}

ValueId PathTile::behind_each(ValueId row, int load, const Row& loaded) {
  const ValueId first = first_of_lane(row);
  ValueId next = loaded.place_after;
  const int width = plan_.load_width;
  Builder::Values behind(static_cast<std::size_t>(width));
  for (int i = elements_a_lane(plan_) - 1; i >= load; --i) {
    const ValueId place = b_.add(first, b_.i32(i));
    if (i < load + width) {
      // Where none begins in the rest of the tile the last one goes on behind it.
      const ValueId none = b_.compute(Op::eq, {next, behind_});
      const ValueId within = i64_of(b_.sub(b_.sub(next, place), b_.i32(1)));
      behind[static_cast<std::size_t>(i - load)] =
          b_.add(within, b_.select(none, beyond_, b_.i64(0)));
    }
    next = b_.select(begins_in_tile(row, i, loaded), place, next);
  }
  return b_.concat(std::move(behind));
}

ValueId PathTile::extents_of(ValueId row, int load, const Row& loaded) {
  const ValueId others = b_.add(before_each(row, load, loaded), behind_each(row, load, loaded));
  return b_.add(others, b_.i64(1));
}

}  // namespace chainfold::codegen
