// A range of a segment by one warp, a row or a batch of rows at a time. The pieces of memory follow
// each other in the scan's order. Each takes the states that the one before it leaves.
#include "chainfold/codegen/lower/scan/pieces.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

bool rows_on_lines(const Plan& plan, std::int64_t run) {
  return plan.hints.non_temporal_from > 0 && plan.load_width == 1 && run % kWarpWidth == 0;
}

/// The pieces of one range. States come and go as the values of Builder::loop.
class ScanTile::Range {
 public:
  using States = Builder::Values;
  Range(ScanTile& scan, ValueId begin, ValueId count, ValueId place, ValueId extent,
        const std::vector<ValueId>& folded)
      : scan_(scan),
        b_(scan.b_),
        depth_(scan.range_plan_.depth),
        width_(scan.plan_.scan.range_width),
        reverse_(scan.ranges_reverse_),
        begin_(begin),
        count_(count),
        place_(place),
        extent_(extent),
        folded_(folded) {
    scan_.range_tile_.read_ahead(scan_.ahead_of_scan());
  }

  /// Rows from the range's begin on: whole batches, and what is no batch, so that rows are on lines
  /// if the range is (`lines`).
  States from_begin(const States& carried, bool lines) {
    lines_ = lines;
    return in_order(batches_and_rest(begin_, count_), carried);
  }

  /// A row up to the first line of `buffer`, wherever the range begins in one, then whole ones.
  States on_lines(const States& carried, int buffer) {
    lines_ = true;
    const int size = size_of(b_.program().buffers[static_cast<std::size_t>(buffer)].type);
    const ValueId behind = b_.misalignment(buffer, begin_, kLineBytes);
    const ValueId line = b_.i64(kLineBytes / size - 1);
    const ValueId before = b_.compute(Op::bit_and, {b_.sub(zero(), behind), line});
    const ValueId lead = b_.min(count_, before);
    std::vector<Piece> pieces = batches_and_rest(b_.add(begin_, lead), b_.sub(count_, lead));
    pieces.insert(pieces.begin(),
                  [&](const States& states) { return row_by_row(begin_, lead, states); });
    return in_order(std::move(pieces), carried);
  }

  /// Rows of a grid that segments share: the one in which a segment ends is the next one's first.
  struct Seam {
    ValueId behind = kNoValue;    ///< elements of the first row that come before the range (i64)
    ValueId is_first = kNoValue;  ///< whether no outputs of these wait (boolean)
    Builder::Values waiting;      ///< their outputs, one an output of elements
  };
  /// A known number of elements, more than a row, in rows that begin with lines of memory. The
  /// first row is stored with what waits for it. The outputs of the last row wait, unless the range
  /// ends with it. They follow the states in the result.
  States to_seam(const States& carried, Seam seam) {
    lines_ = true;
    seam_ = std::move(seam);
    const auto count = static_cast<std::int64_t>(b_.constant_of(count_).value());
    const std::int64_t rows = (count - 1) / kWarpWidth + 1, batches = (rows - 1) / depth_;
    const auto rest = static_cast<int>(rows - batches * depth_);
    const ValueId from = b_.sub(begin_, seam_->behind), end = b_.add(begin_, count_);
    // That behind the last is beyond the type where segments are as long as it counts: it wraps, as
    // additions do.
    auto row = [&](std::int64_t r) {
      const std::uint64_t at = static_cast<std::uint64_t>(r) * kWarpWidth;
      return b_.add(from, b_.i64(static_cast<std::int64_t>(at)));
    };
    const ValueId more = b_.lt(row(rows), end);  // a part of one row more
    Builder::Values known, one_more;
    std::vector<Piece> pieces;
    if (batches > 0) {
      pieces.emplace_back(
          [&](const States& states) { return rows_from(from, depth_, begin_, kNoValue, states); });
      pieces.emplace_back([&](const States& states) {
        return batches_from(row(depth_), b_.i64(batches - 1), states);
      });
    }
    pieces.emplace_back([&](const States& states) {
      States result =
          rows_from(row(rows - rest), rest, batches == 0 ? begin_ : kNoValue, end, states);
      known = std::exchange(last_, {});
      return result;
    });
    pieces.emplace_back([&](const States& states) {
      const auto fields = static_cast<std::ptrdiff_t>(states.size());
      States both = b_.branch(
          more,
          [&] {
            States result = rows_from(row(rows), 1, kNoValue, end, states);
            result.insert(result.end(), last_.begin(), last_.end());
            last_.clear();
            return result;
          },
          [&] {
            States result = states;  // and anything
            result.insert(result.end(), seam_->waiting.begin(), seam_->waiting.end());
            return result;
          });
      one_more.assign(both.begin() + fields, both.end());
      both.resize(static_cast<std::size_t>(fields));
      return both;
    });
    States result = in_order(std::move(pieces), carried);
    const Builder::Values waiting = b_.branch(
        more,
        [&] {
          scan_.store_seam(row(rows - 1), known, kNoValue);
          return one_more;
        },
        [&] { return known; });
    const ValueId left = b_.compute(Op::bit_and, {b_.sub(end, from), b_.i64(kWarpWidth - 1)});
    b_.branch(
        b_.compute(Op::eq, {left, zero()}),
        [&] {
          scan_.store_seam(b_.sub(end, b_.i64(kWarpWidth)), waiting, kNoValue);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
    result.insert(result.end(), waiting.begin(), waiting.end());
    return result;
  }

 private:
  using Piece = std::function<States(const States&)>;

  /// Loads of a range, and where each begins in rows of one element a lane, in the scan's order.
  struct Rows {
    ValueId at = kNoValue, from = kNoValue, limit = kNoValue;
    int count = 0;
    std::vector<Loaded> loaded{};
    std::vector<int> begins{};
  };
  /// `rows` rows from `at` on: of the first one elements from `from` on, of the last one elements
  /// before `limit` (kNoValue: all exist).
  States rows_from(ValueId at, int rows, ValueId from, ValueId limit, const States& carried) {
    TileLowering& tile = scan_.range_tile_;
    const Rows all = load(at, rows, from, limit);
    const Carry before = scan_.carry_of(tile.unflatten(carried, true));
    const auto scan = [&](const Carry& carry) {
      return TileLowering::Scanned{.states = scan_rows(all, carry)};
    };
    // Rows at a seam wait for each other's values, so that no branch ends between them.
    const bool at_seam = seam_ && (from != kNoValue || limit != kNoValue);
    if (!tile.has_quick() || at_seam)
      return tile.flatten(tile.lift(ScanTile::states_of(scan(before).states)));
    ValueId serves = tile.quick_serves(all.loaded);
    const Partials totals = tile.quick_totals(serves, [&] { return total_of(all); });
    const bool is_loop = rows > 1 && from == kNoValue && limit == kNoValue;
    const Carry behind =
        tile.either(
                serves, before, scan,
                [&](std::size_t f) { return scan_.behind(f, before, totals); },
                [&](const Carry& carry) {
                  return is_loop ? TileLowering::Scanned{.states = one_by_one(at, rows, carry)}
                                 : scan(carry);
                })
            .states;
    return tile.flatten(tile.lift(ScanTile::states_of(behind)));
  }

  /// The fold of rows, which come in the scan's order.
  Partials total_of(const Rows& rows) {
    TileLowering& tile = scan_.range_tile_;
    std::vector<Loaded> loaded = rows.loaded;
    if (reverse_) std::reverse(loaded.begin(), loaded.end());
    RowTotals folded(tile);
    for (const Loaded& row : loaded) folded.add(tile.fold_tile(row));
    return tile.reduce_lanes(folded.merged(), 1, kWarpWidth);
  }

  /// Whole rows by the graph's own folds, which are much code.
  Carry one_by_one(ValueId at, int rows, const Carry& carry) {
    TileLowering& tile = scan_.range_tile_;
    const States carried = tile.flatten(ScanTile::states_of(carry));
    const States behind =
        b_.loop(zero(), b_.i64(rows), b_.i64(1), carried, [&](ValueId j, const States& states) {
          const ValueId r = reverse_ ? b_.sub(b_.i64(rows - 1), j) : j;
          const Rows row = load(b_.add(at, b_.mul(r, b_.i64(kWarpWidth))), 1, kNoValue, kNoValue);
          const Carry next = scan_rows(row, scan_.carry_of(tile.unflatten(states, true)));
          return tile.flatten(tile.lift(ScanTile::states_of(next)));
        });
    return scan_.carry_of(tile.unflatten(behind, true));
  }

  Rows load(ValueId at, int rows, ValueId from, ValueId limit) {
    TileLowering& tile = scan_.range_tile_;
    Rows all{.at = at, .from = from, .limit = limit, .count = rows};
    const ValueId first = tile.uses_index() ? b_.add(place_, b_.sub(at, begin_)) : kNoValue;
    const bool wide = from == kNoValue && limit == kNoValue;
    for (int r = 0, width = 1; r < rows; r += width) {
      width = wide && rows - r >= width_ ? width_ : 1;
      const std::int64_t slot = std::int64_t{r} * kWarpWidth;
      const ValueId position = tile.uses_index()
                                   ? tile.positions(b_.add(first, b_.i64(slot)), kWarpWidth, width)
                                   : kNoValue;
      const bool ends = r == rows - 1 && limit != kNoValue;
      ValueId mask = kNoValue;
      if (ends) mask = b_.lt(b_.lane(), lanes_before(b_.sub(limit, b_.add(at, b_.i64(slot)))));
      if (r == 0 && from != kNoValue)
        mask = b_.both(b_.compute(Op::ge, {b_.lane(), lanes_before(b_.sub(from, at))}), mask);
      all.loaded.push_back(tile.load({.base = b_.add(at, b_.i64(slot))}, width, mask, position));
      all.begins.push_back(r);
    }
    if (reverse_) {
      std::reverse(all.loaded.begin(), all.loaded.end());
      std::reverse(all.begins.begin(), all.begins.end());
    }
    return all;
  }

  /// Scans and stores them; gives what comes before the next ones.
  Carry scan_rows(const Rows& rows, const Carry& before) {
    TileLowering& tile = scan_.range_tile_;
    Partials states = ScanTile::states_of(before);
    const auto scanned = scan_.range_row_.scan_range(rows.loaded, states, depth_ > 1);
    for (std::size_t i = 0; i < rows.begins.size(); ++i) {
      const int r = rows.begins[i];
      const Broadcasts values{.running = scanned[i], .whole = folded_};
      const Loaded& row = rows.loaded[i];
      const ValueId place = b_.add(rows.at, b_.i64(std::int64_t{r} * kWarpWidth));
      if (seam_ && r == 0 && rows.from != kNoValue) {
        store_joined(row, place, tile.finish_elements(row, values, extent_));
      } else if (seam_ && r == rows.count - 1 && rows.limit != kNoValue) {
        last_ = scan_.of_elements(tile.finish_elements(row, values, extent_));
      } else {
        scan_.store_row(tile, row, place, values, extent_, lines_);
      }
    }
    return scan_.carry_of(states);
  }

  /// The first row behind a seam, with what the segment before has of it.
  void store_joined(const Loaded& row, ValueId at, const std::vector<ValueId>& outputs) {
    const ValueId before = b_.lt(b_.lane(), lanes_before(seam_->behind));
    Builder::Values joined = scan_.of_elements(outputs);
    b_.branch(
        seam_->is_first,
        [&] {
          scan_.store_seam(at, joined, row.mask);
          return Builder::Values{};
        },
        [&] {
          for (std::size_t o = 0; o < joined.size(); ++o)
            joined[o] = b_.select(before, seam_->waiting[o], joined[o]);
          scan_.store_seam(at, joined, kNoValue);
          return Builder::Values{};
        });
  }

  States row_by_row(ValueId at, ValueId elements, const States& carried) {
    const ValueId limit = b_.add(at, elements), row = b_.i64(kWarpWidth), one = b_.i64(1);
    const ValueId rows = b_.div(b_.add(elements, b_.i64(kWarpWidth - 1)), row);
    return b_.loop(zero(), rows, one, carried, [&](ValueId j, const States& states) {
      const ValueId r = reverse_ ? b_.sub(b_.sub(rows, one), j) : j;
      return rows_from(b_.add(at, b_.mul(r, row)), 1, kNoValue, limit, states);
    });
  }

  /// So many lanes (i32) as there are elements (i64, 0 and more), at most a warp's.
  [[nodiscard]] ValueId lanes_before(ValueId elements) const {
    return b_.convert(b_.min(elements, b_.i64(kWarpWidth)), DType::i32);
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
      if (!lines_ || depth_ == 1 || scan_.range_tile_.has_quick())
        return row_by_row(at, elements, states);
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
  int depth_;  // rows of one element a lane that are a batch
  int width_;  // so many of these are one row where all are there
  bool reverse_, lines_ = false;
  ValueId begin_, count_, place_, extent_;
  const std::vector<ValueId>& folded_;
  std::optional<Seam> seam_;
  Builder::Values last_;  // outputs of the row that waits
};

Builder::Values ScanTile::of_elements(const std::vector<ValueId>& outputs) {
  Builder::Values values;
  for (const ValueId output : outputs)
    if (output != kNoValue) values.push_back(b_.widen(output, 1));
  return values;
}

void ScanTile::store_seam(ValueId at, const Builder::Values& outputs, ValueId mask) {
  std::size_t next = 0;
  for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
    const Node& node = graph_.node(graph_.outputs[o]);
    if (node.level != Level::element) continue;
    b_.store(static_cast<int>(graph_.inputs.size() + o), {at}, outputs[next++], mask,
             mask == kNoValue && rows_are_lines(size_of(node.type)));
  }
}

void ScanTile::scan_on_lines(ValueId first, ValueId behind) {
  const ValueId size = b_.i64(plan_.segment), zero = b_.i64(0);
  const int along = lines_along(graph_);
  const ValueId begin = b_.mul(first, size);
  const ValueId grid = b_.sub(begin, b_.misalignment(along, begin, kLineBytes));
  auto in_row = [&](ValueId at) {
    return b_.compute(Op::bit_and, {b_.sub(at, grid), b_.i64(kWarpWidth - 1)});
  };
  Builder::Values nothing;
  for (const NodeId output : graph_.outputs) {
    const Node& node = graph_.node(output);
    if (node.level == Level::element) nothing.push_back(b_.splat(b_.constant(node.type, 0)));
  }
  const Builder::Values waiting =
      b_.loop(first, behind, b_.i64(1), nothing, [&](ValueId segment, const Builder::Values& open) {
        const ValueId at = b_.mul(segment, size);
        std::vector<ValueId> folded(graph_.folds.size(), kNoValue);
        if (broadcasts(graph_)) folded = values_of(total_of_range(at, size, zero));
        Range range(*this, at, size, zero, size, folded);
        const ValueId before = in_row(at);
        const Builder::Values start = range_tile_.flatten(range_tile_.identities());
        auto to_seam = [&] {
          return range.to_seam(start, {.behind = before,
                                       .is_first = b_.compute(Op::eq, {segment, first}),
                                       .waiting = open});
        };
        Builder::Values result = plan_.segment % kWarpWidth != 0
                                     ? to_seam()
                                     : b_.branch(
                                           b_.compute(Op::eq, {before, zero}),
                                           [&] {
                                             Builder::Values all = range.from_begin(start, true);
                                             all.insert(all.end(), open.begin(), open.end());
                                             return all;
                                           },
                                           to_seam);
        const auto fields = static_cast<std::ptrdiff_t>(start.size());
        Builder::Values waits(result.begin() + fields, result.end());
        result.resize(start.size());
        store_folds(range_tile_.unflatten(result, true), segment, size);
        return waits;
      });
  const ValueId end = b_.mul(behind, size), rest = in_row(end);
  store_seam(b_.sub(end, rest), waiting, mask_from(1, 0, rest));
}

Partials ScanTile::total_of_range(ValueId begin, ValueId count, ValueId place) {
  const ValueId origin = range_tile_.uses_index() ? b_.sub(begin, place) : kNoValue;
  range_tile_.read_ahead_as_planned();
  Partials total = range_tile_.fold_range(begin, count, origin, kNoValue, b_.i32(0), 1);
  return range_tile_.lift(range_tile_.reduce_lanes(std::move(total), 1, kWarpWidth));
}

/// What is prefetched while ranges are scanned: where nothing read them before, what is wanted
/// soon. Segments follow each other forward; what goes on, in its direction.
ValueId ScanTile::ahead_of_scan() {
  if (ahead_ != kNoValue) return ahead_;
  const bool read_before = plan_.strategy == Strategy::look_back || broadcasts(graph_);
  const std::int64_t ahead = plan_.hints.read_ahead;
  if (read_before || ahead == 0) return kNoValue;
  const bool next_segment = plan_.segment > 0 && plan_.segment <= ahead;
  return b_.i64(ranges_reverse_ && !next_segment ? -ahead : ahead);
}

Partials ScanTile::scan_range(ValueId begin, ValueId count, ValueId place, const Partials& carry,
                              ValueId extent, const std::vector<ValueId>& folded) {
  Range range(*this, begin, count, place, extent, folded);
  const Builder::Values carried = range_tile_.flatten(carry);
  const Builder::Values states =
      plan_.hints.to_lines && !has_seams(plan_)
          ? b_.branch(
                b_.streams(), [&] { return range.on_lines(carried, lines_along(graph_)); },
                [&] { return range.from_begin(carried, false); })
          : range.from_begin(carried, !has_seams(plan_) && rows_on_lines(plan_, plan_.segment));
  return range_tile_.unflatten(states, true);
}

}  // namespace chainfold::codegen
