#include "chainfold/codegen/lower_scan_row.hpp"

#include <algorithm>
#include <utility>

#include "chainfold/codegen/lower_quads.hpp"

namespace chainfold::codegen {

ScanRow::ScanRow(Builder& builder, TileLowering& tile, const Graph& graph, std::int64_t segment,
                 bool folds_reverse)
    : b_(builder),
      tile_(tile),
      graph_(graph),
      segment_(segment),
      reverse_(graph.folds.size(), folds_reverse),
      exclusive_(graph.folds.size(), false) {
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::scan) continue;
    reverse_[static_cast<std::size_t>(node.index)] = node.reverse;
    exclusive_[static_cast<std::size_t>(node.index)] = node.exclusive;
  }
}

ScanRow::Heads ScanRow::heads(int width) const {
  if (segment_ == 0) return Heads::none;
  if (width % segment_ == 0) return Heads::inside_lanes;
  return segment_ % width == 0 ? Heads::between_lanes : Heads::anywhere;
}

ValueId ScanRow::lane_in_order(bool reverse) {
  return reverse ? b_.sub(b_.i32(kWarpWidth - 1), b_.lane()) : b_.lane();
}

ValueId ScanRow::place(int i, int width, std::int64_t first, bool reverse) {
  const auto size = static_cast<std::int32_t>(segment_);
  const auto row = static_cast<std::int32_t>(first % segment_);
  const ValueId slot = b_.add(b_.mul(b_.lane(), b_.i32(width)), b_.i32(row));
  const ValueId lane_first = b_.rem(slot, b_.i32(size));
  const int in_memory = reverse ? width - 1 - i : i;
  ValueId position = b_.add(lane_first, b_.i32(in_memory));
  if (heads(width) == Heads::anywhere && in_memory > 0) {
    position = width <= size ? b_.select(b_.lt(position, b_.i32(size)), position,
                                         b_.sub(position, b_.i32(size)))
                             : b_.rem(position, b_.i32(size));
  }
  return reverse ? b_.sub(b_.i32(size - 1), position) : position;
}

Partial ScanRow::merge(std::size_t fold, const Partial& earlier, const Partial& later,
                       bool reverse) {
  return reverse ? tile_.merge(fold, later, earlier) : tile_.merge(fold, earlier, later);
}

Partial ScanRow::shuffled(const Partial& part, int distance, bool reverse) {
  Partial result = part;
  for (ValueId& field : result.fields) {
    if (b_.type(field).shape != Shape::lane) continue;
    field = reverse ? b_.shuffle_down(field, distance) : b_.shuffle_up(field, distance);
  }
  return result;
}

Partial ScanRow::broadcast_last(const Partial& part, bool reverse) {
  Partial result = part;
  const std::vector<std::uint8_t> last(kWarpWidth, reverse ? 0 : kWarpWidth - 1);
  for (ValueId& field : result.fields) {
    if (b_.type(field).shape == Shape::lane) field = b_.permute(field, last);
  }
  return result;
}

Partial ScanRow::choose(std::size_t fold, ValueId condition, const Partial& a, const Partial& b) {
  if (condition == kNoValue) return a;
  const bool lifted = a.lifted || b.lifted;
  Partial left = lifted ? tile_.lift(fold, a) : a;
  const Partial right = lifted ? tile_.lift(fold, b) : b;
  for (std::size_t i = 0; i < left.fields.size(); ++i)
    left.fields[i] = b_.select(condition, left.fields[i], right.fields[i]);
  return left;
}

Partial ScanRow::at_least(std::size_t fold, ValueId value, int bound, const Partial& a,
                          const Partial& b) {
  return choose(fold, b_.compute(Op::ge, {value, b_.i32(bound)}), a, b);
}

/// The prefixes of each lane by itself, in the scan's order.
std::vector<Partial> ScanRow::within_lanes(std::size_t fold, const Partial& elements, int width,
                                           std::int64_t first, bool reverse) {
  std::vector<Partial> prefixes;
  for (int i = 0; i < width; ++i) {
    Partial element = elements;
    const int at = reverse ? width - 1 - i : i;
    for (ValueId& field : element.fields) {
      if (b_.type(field).width > 1) field = b_.extract(field, at);
    }
    prefixes.push_back(std::move(element));
  }
  const Heads how = heads(width);
  for (int half = 1; half < width; half *= 2) {
    for (int start = 0; start < width; start += 2 * half) {
      const int last = start + half - 1;
      for (int i = start + half; i < start + 2 * half; ++i) {
        Partial& right = prefixes[static_cast<std::size_t>(i)];
        const Partial& left = prefixes[static_cast<std::size_t>(last)];
        if (how == Heads::inside_lanes && i / segment_ != last / segment_) continue;
        Partial merged = merge(fold, left, right, reverse);
        right = how == Heads::anywhere
                    ? at_least(fold, place(i, width, first, reverse), i - last, merged, right)
                    : std::move(merged);
      }
    }
  }
  return prefixes;
}

/// The values of the scan's elements in its order, as one vector a lane in memory's order.
ValueId ScanRow::finished(std::size_t fold, const std::vector<Partial>& values, bool reverse) {
  const bool lifted =
      std::any_of(values.begin(), values.end(), [](const Partial& v) { return v.lifted; });
  std::vector<Partial> ordered = values;
  if (reverse) std::reverse(ordered.begin(), ordered.end());
  if (lifted) {
    for (Partial& value : ordered) value = tile_.lift(fold, value);
  }
  Partial wide = ordered[0];
  for (std::size_t i = 0; i < wide.fields.size(); ++i) {
    Builder::Values parts;
    for (const Partial& value : ordered) parts.push_back(value.fields[i]);
    wide.fields[i] = b_.concat(std::move(parts));
  }
  return tile_.finalize(fold, wide);
}

ValueId ScanRow::scan(std::size_t fold, const Partial& elements, int width, std::int64_t first,
                      std::optional<Partial>& carry) {
  Prefixes lanes;
  lanes.values = within_lanes(fold, elements, width, first, reverse_[fold]);
  lanes.total = lanes.values.back();
  lanes.alone = heads(width) == Heads::inside_lanes;
  return join(fold, std::move(lanes), width, first, carry);
}

ValueId ScanRow::scan(std::size_t fold, const Loaded& row, std::int64_t first,
                      std::optional<Partial>& carry) {
  if (!tile_.by_quads(fold, row))
    return scan(fold, tile_.fold_elements(row)[fold], row.width, first, carry);
  return join(fold, within_quads(fold, row, first), row.width, first, carry);
}

ScanRow::Prefixes ScanRow::within_quads_by_lanes(std::size_t fold, const Loaded& row,
                                                 std::int64_t first, int lanes) {
  const bool reverse = reverse_[fold];
  Prefixes quads;
  quads.values = within_lanes(fold, tile_.fold_elements(row)[fold], row.width, first, reverse);
  Partial total = quads.values.back();
  if (lanes == 1) return quads;
  const ValueId lane =
      b_.compute(Op::bit_and, {lane_in_order(reverse), b_.i32(lanes - 1)});  // of the segment
  for (int distance = 1; distance < lanes; distance *= 2) {
    const Partial merged = merge(fold, shuffled(total, distance, reverse), total, reverse);
    total = at_least(fold, lane, distance, merged, total);
  }
  quads.first =
      tile_.keep_where(fold, shuffled(total, 1, reverse), b_.compute(Op::ge, {lane, b_.i32(1)}));
  for (Partial& prefix : quads.values) prefix = merge(fold, *quads.first, prefix, reverse);
  std::vector<std::uint8_t> last(kWarpWidth);
  for (int l = 0; l < kWarpWidth; ++l)
    last[static_cast<std::size_t>(l)] = static_cast<std::uint8_t>(reverse ? l & ~3 : l | 3);
  for (ValueId& field : total.fields) field = b_.permute(field, last);
  quads.total = std::move(total);
  return quads;
}

ScanRow::Prefixes ScanRow::within_quads(std::size_t fold, const Loaded& row, std::int64_t first) {
  constexpr int kLanes = 4;
  const bool reverse = reverse_[fold];
  const int width = row.width;
  Prefixes quads{.values = {}, .first = {}, .total = {}, .lanes = kLanes};
  quads.alone = segment_ > 0 && std::int64_t{kLanes} * width % segment_ == 0;
  // Lanes of a segment, within a quad.
  const int lanes =
      quads.alone ? static_cast<int>(std::max<std::int64_t>(1, segment_ / width)) : kLanes;
  const DType type = graph_.folds[fold].operands[0];
  const QuadPrefixes sums = quad_prefixes(b_, tile_.how(fold).mma_row, tile_.quads_of(fold, row),
                                          quads.alone ? segment_ : 0, reverse);
  Builder::Values values;
  for (const ValueId prefix : sums.prefixes) values.push_back(b_.convert(prefix, type));
  if (reverse) std::reverse(values.begin(), values.end());
  for (const ValueId more : {sums.first, sums.total}) {
    if (more != kNoValue) values.push_back(b_.convert(more, type));
  }
  if (tile_.guarded() && is_float(type)) {
    // 0 * NaN = NaN: one bad element would spoil what comes before it, and other segments.
    const ValueId bad =
        b_.compute(Op::eq, {b_.compute(Op::is_finite, {sums.probe}), b_.boolean(false)});
    values = b_.branch(
        b_.any(bad),
        [&] {
          const Prefixes by_lanes = within_quads_by_lanes(fold, row, first, lanes);
          Builder::Values redone;
          for (const Partial& prefix : by_lanes.values) redone.push_back(prefix.fields[0]);
          if (sums.first != kNoValue) redone.push_back(by_lanes.first->fields[0]);
          if (sums.total != kNoValue) redone.push_back(by_lanes.total.fields[0]);
          return redone;
        },
        [&] { return values; });
  }
  auto partial = [](ValueId value) { return Partial{.fields = {value}}; };
  if (sums.total != kNoValue) quads.total = partial(values.back());
  if (sums.first != kNoValue) quads.first = partial(values[static_cast<std::size_t>(width)]);
  for (int i = 0; i < width; ++i)
    quads.values.push_back(partial(values[static_cast<std::size_t>(i)]));
  return quads;
}

ValueId ScanRow::join(std::size_t fold, Prefixes within, int width, std::int64_t first,
                      std::optional<Partial>& carry) {
  const bool reverse = reverse_[fold], exclusive = exclusive_[fold];
  const Heads how = heads(width);
  std::vector<Partial>& prefixes = within.values;
  const int lanes = within.lanes;
  const Partial nothing = tile_.neutral(fold, prefixes[0].lifted);
  Partial before = nothing;  // of each lane
  const std::int64_t row = std::int64_t{kWarpWidth} * width;
  if (!within.alone) {
    const bool crosses = how == Heads::none || row % segment_ != 0;  // segments cross rows
    const ValueId lane = lane_in_order(reverse);
    auto place_of = [&](int i) { return place(i, width, first, reverse); };
    Partial total = within.total;
    for (int distance = lanes; distance < kWarpWidth; distance *= 2) {
      const int elements_between = distance * width;
      if (how != Heads::none && elements_between >= segment_) break;
      ValueId reaches = kNoValue;
      if (crosses) reaches = b_.compute(Op::ge, {lane, b_.i32(distance)});
      if (how != Heads::none) {
        const ValueId last = place_of(width - 1);
        reaches = b_.both(reaches, b_.compute(Op::ge, {last, b_.i32(elements_between)}));
      }
      const Partial merged = merge(fold, shuffled(total, distance, reverse), total, reverse);
      total = choose(fold, reaches, merged, total);
    }
    ValueId follows = kNoValue;  // a lane of the same segment
    if (crosses) follows = b_.compute(Op::ge, {lane, b_.i32(lanes)});
    if (how != Heads::none) {
      const int all = lanes == 1 ? 1 : lanes * width;  // of the unit before
      follows = b_.both(follows, b_.compute(Op::ge, {place_of(0), b_.i32(all)}));
    }
    before = tile_.keep_where(fold, shuffled(total, lanes, reverse), follows);
    if (carry) {
      const Partial joined = merge(fold, *carry, before, reverse);
      if (how == Heads::none) {
        before = joined;
      } else if (crosses) {
        const ValueId since = b_.sub(place_of(0), b_.mul(lane, b_.i32(width)));
        before = at_least(fold, since, 1, joined, before);
      }
    }
    if (crosses) {
      const Partial last = broadcast_last(total, reverse);
      bool whole_row = how == Heads::none;  // of the segment that the row ends in
      if (!whole_row) {
        const std::int64_t end =
            reverse ? segment_ - 1 - first % segment_ : (first + row - 1) % segment_;
        whole_row = end >= row;
      }
      carry = tile_.lift(fold, carry && whole_row ? merge(fold, *carry, last, reverse) : last);
    }
    if (graph_.folds[fold].tile) before = tile_.collapse(fold, std::move(before));
    for (int i = 0; i < width; ++i) {
      Partial& prefix = prefixes[static_cast<std::size_t>(i)];
      const Partial joined = merge(fold, before, prefix, reverse);
      prefix = how == Heads::anywhere ? at_least(fold, place_of(i), i + 1, joined, prefix) : joined;
    }
  }
  if (exclusive) {
    for (int i = width - 1; i >= 0; --i) {
      Partial value = i > 0           ? prefixes[static_cast<std::size_t>(i - 1)]
                      : !within.first ? before
                      : within.alone  ? *within.first
                                      : merge(fold, before, *within.first, reverse);
      if (how == Heads::inside_lanes && i % segment_ == 0) value = nothing;
      if (how == Heads::anywhere) {
        const ValueId inner = b_.compute(Op::ge, {place(i, width, first, reverse), b_.i32(1)});
        value = tile_.keep_where(fold, std::move(value), inner);
      }
      prefixes[static_cast<std::size_t>(i)] = std::move(value);
    }
  }
  return finished(fold, prefixes, reverse);
}

}  // namespace chainfold::codegen
