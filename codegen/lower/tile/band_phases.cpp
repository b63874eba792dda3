// Rows in phases. A warp takes rows that begin equally far off a load's boundary, and reads windows
// of whole loads. When it is done, it moves the states of its window's columns to the band's lanes.
#include "chainfold/codegen/lower/tile/band.hpp"

namespace chainfold::codegen {

/// The warp's window of the rows that begin as far off a boundary as row `row`.
void Band::open_window(const Source& source, ValueId row) {
  const int width = shape_.width;
  const ValueId begin = b_.mul(b_.add(source.first_row, row), source.strides[0]);
  const int unit = width * size_of(b_.program().buffers[0].type);
  ahead_of_band_ = b_.misalignment(0, b_.add(first_, begin), unit);
  window_ = b_.sub(first_, ahead_of_band_);
  if (!ragged_) return;
  // Lanes behind the end of the rows would bring what no column of the last band needs.
  const ValueId columns = b_.min(b_.i64(shape_.window()), b_.sub(count_, window_));
  for (int run = 0; run < shape_.runs; ++run) {
    window_reads_.push_back(
        b_.lt(lane_column(run * kWarpWidth * width), b_.convert(columns, DType::i32)));
  }
}

Builder::Values Band::fold_phases(const Source& source, ValueId rows) {
  const int phases = shape_.phases;
  const ValueId none = b_.i64(0);
  // The rows between those that are picked.
  const ValueId begin = source.picked_first == kNoValue ? none : source.picked_first;
  const ValueId end = source.picked_last == kNoValue
                          ? rows
                          : b_.compute(Op::max, {begin, b_.sub(rows, source.picked_last)});
  const ValueId warp = wide(b_.warp());
  const ValueId phase = b_.rem(warp, b_.i64(phases));
  open_window(source, b_.add(begin, phase));
  // A batch takes every `phases`-th row; as many warps as there are phases take a run of rows.
  const ValueId size = b_.i64(std::int64_t{shape_.depth} * phases);
  const ValueId whole = b_.add(begin, b_.mul(b_.div(b_.sub(end, begin), size), size));
  const ValueId own = b_.add(b_.mul(b_.div(warp, b_.i64(phases)), size), phase);
  const ValueId step = b_.i64(std::int64_t{shape_.depth} * shape_.warps);
  auto add = [&](ValueId limit) {
    return [&, limit](ValueId at, const Builder::Values& carried) {
      return add_batch(carried, source, at, shape_.depth, limit);
    };
  };
  Builder::Values sum =
      b_.loop(b_.add(begin, own), whole, step, flatten(identities()), add(kNoValue));
  sum = b_.loop(b_.add(whole, own), end, step, sum, add(end));
  // Picked elements need no boundary, so any warp may take these rows. Of memory that begins on a
  // boundary, the first warp's window does not begin before it.
  const ValueId picks = b_.compute(Op::eq, {warp, none});
  auto also = [&](ValueId row, ValueId there_is) {
    sum = b_.branch(
        b_.both(there_is, picks), [&] { return flatten(merge(unflatten(sum), pick(source, row))); },
        [&] { return sum; });
  };
  if (source.picked_last != kNoValue) also(end, b_.lt(end, rows));
  if (source.picked_first != kNoValue) also(none, b_.both(b_.lt(none, begin), b_.lt(none, rows)));
  return sum;
}

/// Every fold's partial of each run of one row, of which only the columns that exist are read.
std::vector<Partials> Band::pick(const Source& source, ValueId row) {
  const ValueId base = b_.add(window_, b_.mul(b_.add(source.first_row, row), source.strides[0]));
  const ValueId before = b_.convert(ahead_of_band_, DType::i32);
  // Of the window, counted from its begin: those behind the rows' begin and before their end.
  const ValueId left = b_.convert(b_.min(first_, ahead_of_band_), DType::i32);
  const ValueId first = b_.sub(before, left);
  const ValueId end =
      b_.convert(b_.min(b_.i64(shape_.window()), b_.sub(count_, window_)), DType::i32);
  ValueId position = kNoValue;
  if (tile_.uses_index()) position = b_.add(source.first_index, row);
  std::vector<Partials> runs;
  for (int run = 0; run < shape_.runs; ++run) {
    const int at = run * kWarpWidth * shape_.width;
    std::vector<ValueId> reads;
    for (int i = 0; i < shape_.width; ++i) {
      const ValueId column = lane_column(at + i);
      ValueId read = b_.lt(column, end);
      if (source.picked_first != kNoValue && run == 0)
        read = b_.both(read, b_.compute(Op::ge, {column, first}));
      reads.push_back(read);
    }
    runs.push_back(source.fold({source.pick({base}, {.base = b_.i64(at)}, position, reads)}));
  }
  return runs;
}

/// The states of the band's columns, each as many lanes' elements lower as the window begins before
/// the band: by the bits of that number. What moves in behind the window's last lane is no column's
/// of the band.
Builder::Values Band::move_to_band(Builder::Values fields) {
  const int width = shape_.width, runs = shape_.runs;
  const std::size_t each = fields.size() / static_cast<std::size_t>(runs);
  auto field = [&](std::size_t i, int run) { return static_cast<std::size_t>(run) * each + i; };
  const ValueId next_lane = b_.add(b_.lane(), b_.i32(1));  // of the last one, lane 0
  const ValueId first_lane = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
  for (int step = width / 2; step > 0; step /= 2) {
    const ValueId moves =
        b_.compute(Op::ne, {b_.compute(Op::bit_and, {ahead_of_band_, b_.i64(step)}), b_.i64(0)});
    const Builder::Values before = fields;
    for (std::size_t i = 0; i < each; ++i) {
      for (int run = 0; run < runs; ++run) {
        const ValueId here = before[field(i, run)];
        if (b_.type(here).width < width) continue;  // the same for all of a lane's columns
        Builder::Values moved{b_.extract(here, step, width - step)};
        for (int j = 0; j < step; ++j) {
          ValueId element = b_.extract(here, j);
          if (run + 1 < runs) {  // the last lane's neighbour is the first one of the next run
            const ValueId next = b_.extract(before[field(i, run + 1)], j);
            element = b_.select(first_lane, next, element);
          }
          moved.push_back(b_.shuffle_from(element, next_lane));
        }
        fields[field(i, run)] = b_.select(moves, b_.concat(moved), here);
      }
    }
  }
  return fields;
}

}  // namespace chainfold::codegen
