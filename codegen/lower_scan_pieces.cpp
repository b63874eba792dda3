// A range of a segment by one warp, one element a lane at a time: pieces of memory, each of which
// takes the states that the one before it, in the scan's order, leaves.
#include <algorithm>
#include <functional>
#include <utility>

#include "chainfold/codegen/lower_scan_tile.hpp"
#include "chainfold/codegen/plan_scan.hpp"

namespace chainfold::codegen {

bool rows_on_lines(const Plan& plan, std::int64_t run) {
  return plan.stream_from > 0 && plan.load_width == 1 && run % kWarpWidth == 0;
}

/// The pieces of one range. States come and go as the values of Builder::loop.
class ScanTile::Range {
 public:
  using States = Builder::Values;
  Range(ScanTile& scan, ValueId begin, ValueId count, ValueId place, ValueId extent,
        const std::vector<ValueId>& folded)
      : scan_(scan),
        b_(scan.b_),
        depth_(scan.narrow_.depth),
        reverse_(scan.ranges_reverse_),
        begin_(begin),
        count_(count),
        place_(place),
        extent_(extent),
        folded_(folded) {}

  /// Rows from the range's begin on: whole batches, and what is no batch, so that rows are on lines
  /// if the range is (`lines`).
  States from_begin(const States& carried, bool lines) {
    lines_ = lines;
    return in_order(batches_and_rest(begin_, count_), carried);
  }

  /// Rows that begin with lines of `buffer`, wherever the range does.
  States on_lines(const States& carried, int buffer) {
    const ValueId behind = b_.misalignment(buffer, begin_, kLineBytes);
    const std::optional<Bits> known = b_.constant_of(count_);
    if (!known) return any_moved(carried, behind, buffer);
    const auto count = static_cast<std::int64_t>(*known);
    if (count % kWarpWidth != 0) return moved(carried, behind, count);
    return b_.branch(
        b_.compute(Op::eq, {behind, zero()}), [&] { return from_begin(carried, true); },
        [&] { return moved(carried, behind, count); });
  }

 private:
  using Piece = std::function<States(const States&)>;

  /// Of a known number of elements: rows from the line on in which the range begins. Wherever that
  /// is, the first one and the last two may have gaps, and the very last one may have nothing.
  States moved(const States& carried, ValueId behind, std::int64_t count) {
    lines_ = true;
    const ValueId end = b_.add(begin_, count_), from = b_.sub(begin_, behind);
    const std::int64_t rows = count / kWarpWidth + 1, batches = (rows - 1) / depth_;
    const auto rest = static_cast<int>(rows - batches * depth_);
    auto row = [&](std::int64_t r) { return b_.add(from, b_.i64(r * kWarpWidth)); };
    std::vector<Piece> pieces;
    if (batches > 0) {
      pieces.emplace_back(
          [&](const States& states) { return rows_from(from, depth_, begin_, kNoValue, states); });
      pieces.emplace_back([&](const States& states) {
        return batches_from(row(depth_), b_.i64(batches - 1), states);
      });
    }
    pieces.emplace_back([&](const States& states) {
      return rows_from(row(rows - rest), rest, batches == 0 ? begin_ : kNoValue, end, states);
    });
    pieces.emplace_back([&](const States& states) {
      const ValueId last = row(rows);
      return row_by_row(last, b_.compute(Op::max, {zero(), b_.sub(end, last)}), states);
    });
    return in_order(std::move(pieces), carried);
  }

  /// Of any number of elements: a row up to the first line, then whole ones.
  States any_moved(const States& carried, ValueId behind, int buffer) {
    lines_ = true;
    const int size = size_of(b_.program().buffers[static_cast<std::size_t>(buffer)].type);
    const ValueId line = b_.i64(kLineBytes / size - 1);
    const ValueId before = b_.compute(Op::bit_and, {b_.sub(zero(), behind), line});
    const ValueId lead = b_.min(count_, before);
    std::vector<Piece> pieces = batches_and_rest(b_.add(begin_, lead), b_.sub(count_, lead));
    pieces.insert(pieces.begin(),
                  [&](const States& states) { return row_by_row(begin_, lead, states); });
    return in_order(std::move(pieces), carried);
  }

  /// `rows` rows from `at` on: of the first one elements from `from` on, of the last one elements
  /// before `limit` (kNoValue: all exist).
  States rows_from(ValueId at, int rows, ValueId from, ValueId limit, const States& carried) {
    TileLowering& tile = scan_.narrow_tile_;
    Partials states = tile.unflatten(carried, true);
    std::vector<Loaded> loaded;
    const ValueId first = tile.uses_index() ? b_.add(place_, b_.sub(at, begin_)) : kNoValue;
    for (int r = 0; r < rows; ++r) {
      const std::int64_t slot = std::int64_t{r} * kWarpWidth;
      const ValueId position =
          tile.uses_index() ? tile.positions(b_.add(first, b_.i64(slot)), kWarpWidth, 1) : kNoValue;
      const bool ends = r == rows - 1 && limit != kNoValue;
      ValueId mask = scan_.mask_from(1, slot, ends ? b_.sub(limit, at) : kNoValue);
      if (r == 0 && from != kNoValue) {
        const ValueId there =
            b_.compute(Op::ge, {b_.convert(b_.lane(), DType::i64), b_.sub(from, at)});
        mask = mask == kNoValue ? there : b_.both(there, mask);
      }
      loaded.push_back(tile.load({.base = b_.add(at, b_.i64(slot))}, 1, mask, position));
    }
    std::vector<Partials> elements;  // from here on rows come in the scan's order
    if (reverse_) std::reverse(loaded.begin(), loaded.end());
    for (const Loaded& row : loaded) elements.push_back(tile.fold_elements(row));
    const auto scanned = scan_.narrow_row_.scan_range(elements, states, depth_ > 1);
    for (int i = 0; i < rows; ++i) {
      const int r = reverse_ ? rows - 1 - i : i;
      std::vector<ValueId> values = folded_;
      for (std::size_t f = 0; f < values.size(); ++f) {
        if (scan_.is_scan_[f]) values[f] = scanned[static_cast<std::size_t>(i)][f];
      }
      scan_.store_row(tile, loaded[static_cast<std::size_t>(i)],
                      b_.add(at, b_.i64(std::int64_t{r} * kWarpWidth)), values, extent_, lines_);
    }
    return tile.flatten(tile.lift(std::move(states)));
  }

  States row_by_row(ValueId at, ValueId elements, const States& carried) {
    const ValueId limit = b_.add(at, elements), row = b_.i64(kWarpWidth), one = b_.i64(1);
    const ValueId rows = b_.div(b_.add(elements, b_.i64(kWarpWidth - 1)), row);
    return b_.loop(zero(), rows, one, carried, [&](ValueId j, const States& states) {
      const ValueId r = reverse_ ? b_.sub(b_.sub(rows, one), j) : j;
      return rows_from(b_.add(at, b_.mul(r, row)), 1, kNoValue, limit, states);
    });
  }

  [[nodiscard]] ValueId batch() const { return b_.i64(std::int64_t{kWarpWidth} * depth_); }

  States batches_from(ValueId at, ValueId batches, const States& carried) {
    return b_.loop(zero(), batches, b_.i64(1), carried, [&](ValueId j, const States& s) {
      const ValueId i = reverse_ ? b_.sub(b_.sub(batches, b_.i64(1)), j) : j;
      return rows_from(b_.add(at, b_.mul(i, batch())), depth_, kNoValue, kNoValue, s);
    });
  }

  std::vector<Piece> batches_and_rest(ValueId at, ValueId count) {
    const ValueId batches = b_.div(count, batch()), done = b_.mul(batches, batch());
    return {
        [=, this](const States& states) { return batches_from(at, batches, states); },
        [=, this](const States& states) {
          return rest_of(b_.add(at, done), b_.sub(count, done), states);
        },
    };
  }

  /// Fewer elements than a batch.
  States rest_of(ValueId at, ValueId elements, States states) {
    const std::optional<Bits> known = b_.constant_of(elements);
    const ValueId limit = b_.add(at, elements);
    if (!known) {
      if (!lines_ || depth_ == 1) return row_by_row(at, elements, states);
      // A tile whose first row has a gap is short of a batch by a part of a row.
      return b_.branch(
          b_.lt(b_.i64(std::int64_t{kWarpWidth} * (depth_ - 1)), elements),
          [&] { return rows_from(at, depth_, kNoValue, limit, states); },
          [&] { return row_by_row(at, elements, states); });
    }
    const auto full = static_cast<int>(*known / kWarpWidth);
    const bool ragged = *known % kWarpWidth != 0;
    auto last = [&] {
      const ValueId last_at = b_.add(at, b_.i64(std::int64_t{full} * kWarpWidth));
      return rows_from(last_at, 1, kNoValue, limit, states);
    };
    if (ragged && reverse_) states = last();
    if (full > 0) states = rows_from(at, full, kNoValue, kNoValue, states);
    if (ragged && !reverse_) states = last();
    return states;
  }

  /// Pieces come in memory's order.
  States in_order(std::vector<Piece> pieces, States states) const {
    if (reverse_) std::reverse(pieces.begin(), pieces.end());
    for (const Piece& piece : pieces) states = piece(states);
    return states;
  }

  [[nodiscard]] ValueId zero() const { return b_.i64(0); }

  ScanTile& scan_;
  Builder& b_;
  int depth_;
  bool reverse_, lines_ = false;
  ValueId begin_, count_, place_, extent_;
  const std::vector<ValueId>& folded_;
};

Partials ScanTile::total_of_range(ValueId begin, ValueId count, ValueId place) {
  const ValueId origin = narrow_tile_.uses_index() ? b_.sub(begin, place) : kNoValue;
  narrow_tile_.read_ahead(plan_.read_ahead);
  Partials total = narrow_tile_.fold_range(begin, count, origin, kNoValue, b_.i32(0), 1);
  return narrow_tile_.lift(narrow_tile_.reduce_lanes(std::move(total), 1, kWarpWidth));
}

/// What is asked for while ranges are scanned: the tile that comes next, or, where nothing read
/// them before, what is wanted soon. Segments follow each other forward; what goes on, in its
/// direction.
std::int64_t ScanTile::ahead_of_scan() const {
  const bool read_before = plan_.strategy == Strategy::look_back || broadcasts(graph_);
  const std::int64_t ahead = read_before ? plan_.next_tile : plan_.read_ahead;
  const bool next_segment =
      plan_.strategy != Strategy::look_back && plan_.segment > 0 && plan_.segment <= ahead;
  return ranges_reverse_ && !next_segment ? -ahead : ahead;
}

Partials ScanTile::scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                              ValueId extent, const std::vector<ValueId>& folded) {
  narrow_tile_.read_ahead(ahead_of_scan());
  Range range(*this, begin, count, place, extent, folded);
  const Builder::Values carried = narrow_tile_.flatten(carry);
  const Builder::Values states =
      plan_.to_lines
          ? b_.branch(
                b_.streams(), [&] { return range.on_lines(carried, lines_along(graph_)); },
                [&] { return range.from_begin(carried, false); })
          : range.from_begin(carried, rows_on_lines(plan_, plan_.segment));
  return narrow_tile_.unflatten(states, true);
}

}  // namespace chainfold::codegen
