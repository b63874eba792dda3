#include "chainfold/codegen/lower/scan/tile.hpp"

#include <algorithm>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/scan/pieces.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kStoreBytes = 16;

Plan range_plan(const Plan& plan) {
  Plan range = plan;
  range.strategy = Strategy::parts;  // the rest of a range is a loop, too
  range.load_width = plan.scan.range_load;
  range.edges =
      plan.scan.range_load > 1 && (plan.is_whole() || plan.segment % plan.scan.range_load != 0);
  range.base_alignment = kStoreBytes;  // loads begin anywhere, so pointers' alignment is no matter
  range.depth = plan.scan.range_depth;
  for (FoldPlan& how : range.folds) how.unit = Unit::simt;
  return range;
}

bool ranges_reverse(const Graph& graph) {
  return !scans_both_ways(graph) && std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                                [](const Node& node) { return node.reverse; });
}

/// Lanes that a segment takes where it begins and ends with lanes and rows.
int lanes_of(std::int64_t segment, int width) { return static_cast<int>(segment / width); }

}  // namespace

ScanTile::ScanTile(Builder& builder, const Graph& graph, const Plan& plan, std::int64_t segment)
    : b_(builder),
      graph_(graph),
      plan_(plan),
      range_plan_(range_plan(plan)),
      segment_(segment),
      reverse_(graph.folds.size(), false),
      is_scan_(graph.folds.size(), false),
      asked_(broadcast_folds(graph)),
      spreads_(graph.folds.size(), false),
      ranges_reverse_(ranges_reverse(graph)),
      tile_(builder, graph, plan_),
      range_tile_(builder, graph, range_plan_),
      row_(builder, tile_, graph, segment),
      range_row_(builder, range_tile_, graph, 0, ranges_reverse_) {
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::scan) continue;
    is_scan_[static_cast<std::size_t>(node.index)] = true;
    reverse_[static_cast<std::size_t>(node.index)] = node.reverse;
  }
  const bool crosses = segment > 0 && !rows_hold_segments(segment, plan.load_width);
  for (std::size_t f = 0; f < graph.folds.size(); ++f) spreads_[f] = crosses && asked_[f];
  for (const NodeId output : graph.outputs)
    has_ends_ = has_ends_ || graph.node(output).level == Level::segment;
}

Partials ScanTile::merge(const Partials& earlier, const Partials& later) {
  Partials merged;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f)
    merged.push_back(merge(f, earlier[f], later[f]));
  return merged;
}

ValueId ScanTile::mask_from(int width, std::int64_t slot, ValueId count) {
  if (count == kNoValue) return kNoValue;
  const ValueId lanes = b_.convert(b_.mul(b_.lane(), b_.i32(width)), DType::i64);
  return b_.lt(lanes, b_.sub(count, b_.i64(slot)));
}

ValueId ScanTile::row_mask(ValueId count, int r) {
  return mask_from(plan_.load_width, r * row_elements(), count);
}

Loaded ScanTile::load_row(TileLowering& tile, int width, ValueId begin, std::int64_t slot,
                          ValueId count, ValueId position) {
  const ValueId mask = mask_from(width, slot, count);
  return tile.load({.base = b_.add(begin, b_.i64(slot))}, width, mask, position);
}

ValueId ScanTile::row_position(ValueId place, int r) {
  if (!tile_.uses_index()) return kNoValue;
  const int width = plan_.load_width;
  if (segment_ == 0 || segment_ % width == 0) {
    const ValueId first = b_.add(place, b_.i64(r * row_elements()));
    const ValueId position = tile_.positions(first, kWarpWidth, width);
    return segment_ > 0 ? b_.rem(position, b_.i64(segment_)) : position;
  }
  // Segments begin within loads: of each element. Such segments are short enough for an i32.
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_));
  const auto wrapped = [&](ValueId position) {
    return b_.select(b_.lt(position, size), position, b_.sub(position, size));
  };
  // One division for all rows, and one for a row of several segments.
  ValueId start = b_.convert(b_.rem(place, b_.i64(segment_)), DType::i32);
  if (const std::int64_t ahead = r * row_elements() % segment_; ahead > 0)
    start = wrapped(b_.add(start, b_.i32(static_cast<std::int32_t>(ahead))));
  ValueId slot = b_.mul(b_.lane(), b_.i32(width));
  if ((kWarpWidth - 1) * std::int64_t{width} >= segment_) slot = b_.rem(slot, size);
  const ValueId begin = wrapped(b_.add(slot, start));
  Builder::Values places;
  for (int e = 0; e < width; ++e) {
    const ValueId position = b_.add(begin, b_.i32(e));
    places.push_back(b_.convert(e == 0              ? begin
                                : segment_ >= width ? wrapped(position)
                                                    : b_.rem(position, size),
                                DType::i64));
  }
  return b_.concat(std::move(places));
}

std::vector<Loaded> ScanTile::load(ValueId begin, ValueId count, ValueId place, int rows) {
  std::vector<Loaded> loaded;
  for (int r = 0; r < rows; ++r)
    loaded.push_back(load_row(tile_, plan_.load_width, begin, r * row_elements(), count,
                              row_position(place, r)));
  return loaded;
}

Partials ScanTile::total(const std::vector<Loaded>& rows) {
  return tile_.either(rows, [&] { return fold_rows(rows); });
}

Partials ScanTile::fold_rows(const std::vector<Loaded>& rows) {
  RowTotals folded(tile_);
  for (const Loaded& row : rows) folded.add(tile_.fold_tile(row));
  return total(std::move(folded));
}

Partials ScanTile::states_of(const Carry& carry) {
  Partials states;
  for (const std::optional<Partial>& state : carry) states.push_back(*state);
  return states;
}

Partials ScanTile::total(RowTotals folded) {
  Partials total = folded.merged();
  if (plan_.combine_states) total = tile_.lift(std::move(total));
  return tile_.lift(tile_.reduce_lanes(std::move(total), tile_.lanes_alike(), kWarpWidth));
}

void ScanTile::scan_rows(const std::vector<Loaded>& rows, Carry& carry,
                         const std::function<void(std::size_t, Broadcasts)>& done) {
  const std::size_t count = rows.size(), folds = graph_.folds.size();
  const std::vector<ValueId> none(folds, kNoValue);
  std::vector<Broadcasts> values(count, {.running = none, .whole = none});
  std::vector<RowCarry> before;
  for (const std::optional<Partial>& state : carry) before.push_back({.state = state});
  auto scanned = [&](std::size_t f) { return is_scan_[f] || segment_ != 0; };  // else totals serve
  auto scan_row = [&](std::size_t f, std::size_t r) {
    return row_.scan(f, rows[r], static_cast<std::int64_t>(r) * row_elements(), before[f]);
  };
  auto scan_all = [&](bool reverse, bool last) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t r = reverse ? count - 1 - i : i;
      for (std::size_t f = 0; f < folds; ++f) {
        if (!scanned(f) || spreads_[f] || reverse_[f] != reverse) continue;
        values[r].running[f] = scan_row(f, r);
      }
      if (last) done(r, std::move(values[r]));
    }
  };
  // Broadcasts of folds that end further on are there before the rows are done.
  for (std::size_t f = 0; f < folds; ++f) {
    for (std::size_t r = 0; r < count && spreads_[f]; ++r) values[r].running[f] = scan_row(f, r);
  }
  spread_ends(values);
  bool forward = false, reverse = false;
  for (std::size_t f = 0; f < folds; ++f) {
    forward = forward || (scanned(f) && !reverse_[f]);
    reverse = reverse || (scanned(f) && reverse_[f]);
  }
  if (reverse) scan_all(true, !forward);
  if (forward) scan_all(false, true);
  for (std::size_t f = 0; f < folds; ++f) carry[f] = row_.settled(f, before[f]);
}

Carry ScanTile::scan(const std::vector<Loaded>& rows, ValueId begin, Carry carry, ValueId extent,
                     const std::vector<ValueId>& folded, ValueId count, ValueId before) {
  const auto scan = [&](Carry from) {
    return TileLowering::Scanned{
        .states = scan_either(rows, begin, std::move(from), extent, folded, count, before)};
  };
  if (!tile_.has_quick() || tile_.is_quick()) return scan(std::move(carry)).states;
  ValueId serves = tile_.quick_serves(rows);
  const Partials totals = tile_.quick_totals(serves, [&] { return fold_rows(rows); });
  return tile_
      .either(
          serves, carry, scan, [&](std::size_t f) { return behind(f, carry, totals); }, scan)
      .states;
}

Partial ScanTile::behind(std::size_t fold, const Carry& carry, const Partials& totals) {
  return carry[fold] ? merge(fold, *carry[fold], totals[fold]) : totals[fold];
}

Carry ScanTile::scan_either(const std::vector<Loaded>& rows, ValueId begin, Carry carry,
                            ValueId extent, const std::vector<ValueId>& folded, ValueId count,
                            ValueId before) {
  Ending ending;
  if (count != kNoValue) ending = ending_of(count, before);
  scan_rows(rows, carry, [&](std::size_t r, Broadcasts values) {
    values.whole = folded;
    const ValueId at = b_.add(begin, b_.i64(static_cast<std::int64_t>(r) * row_elements()));
    if (count == kNoValue) {
      store_row(tile_, rows[r], at, values, extent, rows_on_lines(plan_, plan_.segment));
    } else {
      store_existing(rows[r], static_cast<int>(r), at, values, extent, ending);
    }
  });
  if (count != kNoValue) store_rest(begin, static_cast<int>(rows.size()), ending);
  return carry;
}

Carry ScanTile::scan_segments(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                              ValueId first, Carry carry) {
  // Warps that exchange what segments end with meet at a barrier, whatever serves them.
  const bool meets = std::find(spreads_.begin(), spreads_.end(), true) != spreads_.end();
  if (meets || !tile_.has_quick())
    return scan_segments_either(rows, begin, count, first, std::move(carry));
  // Rows that have quick folds hold all that goes on in them: nothing asks for what is left.
  const auto scan = [&](Carry from) {
    scan_segments_either(rows, begin, count, first, std::move(from));
    return TileLowering::Scanned{};
  };
  tile_.either(tile_.quick_serves(rows, true), carry, scan, nullptr, scan);
  return no_carry();
}

bool ScanTile::leaves_segments() const {
  return tile_.has_quick() && segment_ > row_elements() && !scans_both_ways(graph_) &&
         !broadcasts(graph_);
}

ValueId ScanTile::scan_quick_segments(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                                      ValueId first) {
  ValueId serves = tile_.quick_serves(rows, true);
  static_cast<void>(tile_.narrowed(serves, no_carry()));
  const ValueId all = b_.all(serves);
  b_.branch(
      all,
      [&] {
        return tile_.quickly(TileLowering::Form::scans, [&] {
          scan_segments_either(rows, begin, count, first, no_carry());
          return Builder::Values{};
        });
      },
      [] { return Builder::Values{}; });
  return all;
}

Carry ScanTile::scan_segments_either(const std::vector<Loaded>& rows, ValueId begin, ValueId count,
                                     ValueId first, Carry carry) {
  const ValueId extent = b_.i64(segment_);
  const bool lines =
      !begins_anywhere() && rows_on_lines(plan_, plan_.scan.tile_segments * segment_);
  scan_rows(rows, carry, [&](std::size_t r, Broadcasts values) {
    if (has_ends_ && !row_.of_one())
      store_ends(rows[r], static_cast<int>(r), values.running, count, first);
    for (std::size_t f = 0; f < asked_.size(); ++f) {
      if (asked_[f] && !spreads_[f])
        values.whole[f] = broadcast_end(values.running[f], rows[r].width);
    }
    const std::int64_t slot = static_cast<std::int64_t>(r) * row_elements();
    const bool ends = count != kNoValue && rows[r].mask == kNoValue;
    store_row(tile_, rows[r], b_.add(begin, b_.i64(slot)), values, extent, lines,
              ends ? b_.sub(count, b_.i64(slot)) : kNoValue);
  });
  return carry;
}

ValueId ScanTile::broadcast_end(ValueId values, int width) {
  if (width % segment_ == 0) {
    Builder::Values ends;
    for (int i = 0; i < width; ++i) {
      const auto size = static_cast<int>(segment_);
      ends.push_back(b_.extract(values, i / size * size + size - 1));
    }
    return b_.concat(std::move(ends));
  }
  const int lanes = lanes_of(segment_, width);
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l)
    source[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(l / lanes * lanes + lanes - 1);
  return b_.permute(b_.extract(values, width - 1), source);
}

void ScanTile::store_ends(const Loaded& row, int r, const std::vector<ValueId>& running,
                          ValueId count, ValueId first) {
  const std::vector<ValueId> ends =
      tile_.finish_elements(row, {.whole = running}, b_.i64(segment_), Level::segment);
  const auto size = static_cast<std::int32_t>(segment_);
  const ValueId slot = b_.add(b_.mul(b_.lane(), b_.i32(row.width)),
                              b_.i32(static_cast<std::int32_t>(r * row_elements())));
  for (int i = 0; i < row.width; ++i) {
    // Without heads anywhere, segments end with lanes, or at known elements of them.
    if (segment_ % row.width == 0 && i != row.width - 1) continue;
    if (row.width % segment_ == 0 && (i + 1) % segment_ != 0) continue;
    const ValueId of_run = b_.add(slot, b_.i32(i + 1));
    const ValueId behind = slot_ == kNoValue ? of_run : b_.add(of_run, slot_);
    ValueId mask = row.width % segment_ == 0
                       ? kNoValue
                       : b_.compute(Op::eq, {b_.rem(behind, b_.i32(size)), b_.i32(0)});
    if (count != kNoValue) {
      mask = b_.both(mask, b_.compute(Op::le, {b_.convert(of_run, DType::i64), count}));
    }
    const ValueId segment = b_.sub(b_.div(behind, b_.i32(size)), b_.i32(1));
    for (std::size_t o = 0; o < ends.size(); ++o) {
      if (ends[o] == kNoValue) continue;
      const ValueId value = b_.type(ends[o]).width > 1 ? b_.extract(ends[o], i) : ends[o];
      b_.store(static_cast<int>(graph_.inputs.size() + o),
               {.base = first, .group = 1, .stride = 0, .offset = segment}, value, mask);
    }
  }
}

std::vector<ValueId> ScanTile::values_of(const Partials& folds) {
  std::vector<ValueId> values(folds.size(), kNoValue);
  for (std::size_t f = 0; f < folds.size(); ++f) {
    if (asked_[f]) values[f] = tile_.finalize(f, folds[f]);
  }
  return values;
}

void ScanTile::store_folds(const Partials& folds, ValueId segment, ValueId extent) {
  if (!has_ends_) return;
  const std::vector<ValueId> outputs = tile_.finish(folds, extent);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoValue) continue;
    b_.store(static_cast<int>(graph_.inputs.size() + i), {segment}, outputs[i],
             b_.compute(Op::eq, {b_.lane(), b_.i32(0)}));
  }
}

void ScanTile::store_row(TileLowering& tile, const Loaded& row, ValueId at,
                         const Broadcasts& values, ValueId extent, bool lines, ValueId left) {
  const std::vector<ValueId> outputs = tile.finish_elements(row, values, extent);
  if (left == kNoValue) return store_values(row, at, outputs, lines);
  b_.branch(
      b_.compute(Op::ge, {left, b_.i64(std::int64_t{kWarpWidth} * row.width)}),
      [&] {
        store_values(row, at, outputs, lines);
        return Builder::Values{};
      },
      [&] {
        store_ending(row, at, outputs, left);
        return Builder::Values{};
      });
}

void ScanTile::store_ending(const Loaded& row, ValueId at, const std::vector<ValueId>& outputs,
                            ValueId left) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == kNoValue) continue;
    const ValueId value = b_.widen(outputs[o], row.width);
    for (int i = 0; i < row.width; ++i) {
      const ValueId slot = b_.add(b_.mul(b_.lane(), b_.i32(row.width)), b_.i32(i));
      b_.store(static_cast<int>(graph_.inputs.size() + o),
               {.base = b_.add(at, b_.i64(i)), .group = 1, .stride = row.width},
               b_.extract(value, i), b_.lt(b_.convert(slot, DType::i64), left));
    }
  }
}

void ScanTile::store_values(const Loaded& row, ValueId at, const std::vector<ValueId>& outputs,
                            bool lines) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNoValue) continue;
    const auto buffer = static_cast<int>(graph_.inputs.size() + i);
    const ValueId value = b_.widen(outputs[i], row.width);
    // What is stored may be wider than what is loaded. Then it is also wider than memory is aligned
    // to, which matters where accesses do not begin anywhere.
    const int size = size_of(b_.type(value).elem);
    const int bytes = std::min(kStoreBytes, std::max(plan_.base_alignment, size));
    const bool anywhere = b_.program().accesses_anywhere;
    const int width = anywhere ? row.width : std::min(row.width, bytes / size);
    for (int first = 0; first < row.width; first += width) {
      Address address{.base = b_.add(at, b_.i64(first))};
      if (width < row.width) address = {.base = address.base, .group = 1, .stride = row.width};
      b_.store(buffer, address, b_.extract(value, first, width), row.mask,
               lines && row.mask == kNoValue && rows_are_lines(size));
    }
  }
}

}  // namespace chainfold::codegen
