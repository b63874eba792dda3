#include "chainfold/codegen/lower/scan/row.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

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

ValueId ScanRow::wrapped(ValueId position) {
  const ValueId size = b_.i32(static_cast<std::int32_t>(segment_));
  return b_.select(b_.lt(position, size), position, b_.sub(position, size));
}

ValueId ScanRow::lane_place(int width, std::int64_t first, bool reverse) {
  const auto size = static_cast<std::int32_t>(segment_);
  const auto row = static_cast<std::int32_t>(first % segment_);
  const std::int32_t last = (kWarpWidth - 1) * width;
  const ValueId slot = b_.mul(b_.lane(), b_.i32(width));
  ValueId position = last < size ? slot : b_.rem(slot, b_.i32(size));
  if (origin_ != kNoValue) {
    ValueId start = origin_;
    if (row > 0) start = wrapped(b_.add(start, b_.i32(row)));
    position = wrapped(b_.add(position, start));
  } else if (row > 0) {
    position = b_.add(position, b_.i32(row));
    if (last >= size || row + last >= size) position = wrapped(position);
  }
  if (!reverse) return position;
  // That of the lane's last element in memory, from the other end.
  const ValueId left = b_.sub(b_.i32((size - width % size) % size), position);
  if (heads(width) != Heads::anywhere) return left;
  return b_.select(b_.lt(left, b_.i32(0)), b_.add(left, b_.i32(size)), left);
}

ValueId ScanRow::place(int i, int width, std::int64_t first, bool reverse) {
  ValueId position = lane_place(width, first, reverse);
  if (i == 0) return position;
  position = b_.add(position, b_.i32(i));
  if (heads(width) != Heads::anywhere) return position;
  return segment_ >= width ? wrapped(position)
                           : b_.rem(position, b_.i32(static_cast<std::int32_t>(segment_)));
}

ValueId ScanRow::no_head(int after, int upto, int width, std::int64_t first, bool reverse) {
  if (heads(width) != Heads::anywhere) return kNoValue;
  if (segment_ < width)
    return b_.compute(Op::ge, {place(upto, width, first, reverse), b_.i32(upto - after)});
  // A lane holds one head at most, and only at multiples of what loads and segments have in common.
  const auto step = static_cast<int>(std::gcd(segment_, std::int64_t{width}));
  const int from = (after / step + 1) * step, to = upto / step * step;
  if (from > to) return kNoValue;
  const auto size = static_cast<std::int32_t>(segment_);
  const ValueId position = lane_place(width, first, reverse);
  if (from == to && after > 0) return b_.compute(Op::ne, {position, b_.i32(size - from)});
  const ValueId behind = b_.lt(position, b_.i32(size - to));
  if (after == 0) return behind;
  return b_.compute(Op::bit_or, {behind, b_.compute(Op::gt, {position, b_.i32(size - from)})});
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

Partial ScanRow::permuted(const Partial& part, const std::vector<std::uint8_t>& lanes) {
  Partial result = part;
  for (ValueId& field : result.fields) {
    if (b_.type(field).shape == Shape::lane) field = b_.permute(field, lanes);
  }
  return result;
}

Partial ScanRow::broadcast_last(const Partial& part, bool reverse) {
  return permuted(part, std::vector<std::uint8_t>(kWarpWidth, reverse ? 0 : kWarpWidth - 1));
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

std::vector<Partial> ScanRow::in_order(const Partial& elements, int width, bool reverse) {
  std::vector<Partial> ordered;
  for (int i = 0; i < width; ++i) {
    Partial element = elements;
    const int at = reverse ? width - 1 - i : i;
    for (ValueId& field : element.fields) {
      if (b_.type(field).width > 1) field = b_.extract(field, at);
    }
    ordered.push_back(std::move(element));
  }
  return ordered;
}

/// The prefixes of each lane by itself, in the scan's order.
std::vector<Partial> ScanRow::within_lanes(std::size_t fold, const Partial& elements, int width,
                                           std::int64_t first, bool reverse) {
  std::vector<Partial> prefixes = in_order(elements, width, reverse);
  const Heads how = heads(width);
  // The fold of the run that ends with `last` is taken into that of the run which follows it and
  // ends with i. Up to the lane's fold both are runs of as many elements. Then the left one is a
  // prefix already, so the right one becomes one.
  const auto take_in = [&](int last, int i) {
    if (how == Heads::inside_lanes && i / segment_ != last / segment_) return;
    Partial& right = prefixes[static_cast<std::size_t>(i)];
    const Partial& left = prefixes[static_cast<std::size_t>(last)];
    right = choose(fold, no_head(last, i, width, first, reverse), merge(fold, left, right, reverse),
                   right);
  };
  for (int half = 1; half < width; half *= 2) {
    for (int i = 2 * half - 1; i < width; i += 2 * half) take_in(i - half, i);
  }
  for (int half = width / 4; half >= 1; half /= 2) {
    for (int i = 3 * half - 1; i < width; i += 2 * half) take_in(i - half, i);
  }
  return prefixes;
}

/// The values of the scan's elements in its order, as one vector a lane in memory's order.
ValueId ScanRow::finished(std::size_t fold, const std::vector<Partial>& values, bool reverse,
                          bool behind_state) {
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
  // A sum is its own result, but for -0: behind a state's value it is never that.
  if (!lifted && has_wider_state(fold)) {
    const ValueId sum = wide.fields[0];
    return behind_state ? sum : b_.add(sum, b_.constant(b_.type(sum).elem, 0));
  }
  return tile_.finalize(fold, wide);
}

ValueId ScanRow::scan(std::size_t fold, const Partial& elements, int width, std::int64_t first,
                      RowCarry& carry) {
  Prefixes lanes;
  lanes.values = within_lanes(fold, elements, width, first, reverse_[fold]);
  lanes.total = lanes.values.back();
  lanes.alone = heads(width) == Heads::inside_lanes;
  return join(fold, std::move(lanes), width, first, carry);
}

ValueId ScanRow::within_one(std::int64_t first, std::int64_t row, bool reverse) {
  const auto size = static_cast<std::int32_t>(segment_);
  const auto ahead = static_cast<std::int32_t>((reverse ? first + row - 1 : first) % segment_);
  ValueId begin = wrapped(b_.add(origin_, b_.i32(ahead)));
  if (reverse) begin = b_.sub(b_.i32(size - 1), begin);
  const ValueId there = b_.compute(Op::ge, {begin, b_.i32(1)});
  return b_.both(there, b_.compute(Op::le, {begin, b_.i32(size - static_cast<std::int32_t>(row))}));
}

ValueId ScanRow::scan(std::size_t fold, const Loaded& row, std::int64_t first, RowCarry& carry) {
  const std::int64_t elements = std::int64_t{kWarpWidth} * row.width, segment = segment_;
  auto as_of_one = [&](auto body) {
    segment_ = 0;
    auto values = body();
    segment_ = segment;
    return values;
  };
  if (known_ == Known::of_one) return as_of_one([&] { return scan_row(fold, row, first, carry); });
  const bool begins = !carry.state && !carry.rows;
  if (origin_ == kNoValue || segment <= elements || begins || known_ == Known::asked)
    return scan_row(fold, row, first, carry);
  // Most rows of long segments have no heads.
  const Partial before = tile_.lift(fold, *settled(fold, carry));
  auto scanned = [&] {
    RowCarry through{.state = before};
    Builder::Values values = {scan_row(fold, row, first, through)};
    const Partial next = tile_.lift(fold, *settled(fold, through));
    for (const ValueId field : next.fields) values.push_back(b_.splat(field));
    return values;
  };
  const Builder::Values values = b_.branch(
      within_one(first, elements, reverse_[fold]), [&] { return as_of_one(scanned); }, scanned);
  carry = {.state = before};
  carry.state->fields.assign(values.begin() + 1, values.end());
  return values[0];
}

ValueId ScanRow::scan_row(std::size_t fold, const Loaded& row, std::int64_t first,
                          RowCarry& carry) {
  if (segment_ == 0 && carry.state && screens_rows(fold))
    return scan_places(fold, tile_.fold_elements(row)[fold], row.width, first, carry);
  if (!tile_.by_quads(fold, row))
    return scan(fold, tile_.fold_elements(row)[fold], row.width, first, carry);
  return join(fold, within_quads(fold, row, first), row.width, first, carry);
}

Partial ScanRow::carry_behind(std::size_t fold, const std::optional<Partial>& carry,
                              const Partial& last, std::int64_t first, std::int64_t row) {
  const bool reverse = reverse_[fold];
  if (segment_ == 0) return tile_.lift(fold, carry ? merge(fold, *carry, last, reverse) : last);
  if (carry && segment_ > row && origin_ != kNoValue && known_ == Known::asked) {
    const Partial merged = tile_.lift(fold, merge(fold, *carry, last, reverse));
    return choose(fold, b_.splat(within_one(first, row, reverse)), merged, last);
  }
  // A segment that began within the row is one rounded value so far.
  const std::int64_t end = reverse ? segment_ - 1 - first % segment_ : (first + row - 1) % segment_;
  if (!carry || segment_ <= row || origin_ != kNoValue || end < row) return last;
  return tile_.lift(fold, merge(fold, *carry, last, reverse));
}

std::optional<Partial> ScanRow::settled(std::size_t fold, const RowCarry& carry) {
  if (!carry.rows) return carry.state;
  if (!carry.state) return tile_.lift(fold, *carry.rows);
  return tile_.lift(fold, merge(fold, *carry.state, *carry.rows, reverse_[fold]));
}

bool ScanRow::has_wider_state(std::size_t fold) const {
  const Fold& f = tile_.fold_of(fold);
  return f.tile && f.linear && f.state.size() == 1 && f.state != f.operands;
}

bool ScanRow::adds_values(std::size_t fold) const {
  const Fold& f = tile_.fold_of(fold);
  // Values that a matrix instruction has rounded have no error left for more plain additions.
  return f.tile && (tile_.how(fold).unit == Unit::simt || !is_float(f.result()));
}

bool ScanRow::states_cost_more(std::size_t fold) const {
  const Fold& f = tile_.fold_of(fold);
  return adds_values(fold) && f.state != f.operands;
}

Partial ScanRow::behind_state(std::size_t fold, const Partial& state, std::optional<Partial> rows) {
  if (has_wider_state(fold)) {
    const Partial value = tile_.collapse(fold, state);
    return rows ? merge(fold, value, *rows, reverse_[fold]) : value;
  }
  for (std::size_t i = state.fields.size(); i-- > 0;) {
    const Partial field{.fields = {state.fields[i]}};
    rows = rows ? merge(fold, field, *rows, reverse_[fold]) : field;
  }
  return *rows;
}

Partial ScanRow::behind(std::size_t fold, const RowCarry& carry, const Partial& part) {
  const bool reverse = reverse_[fold];
  if (!adds_values(fold) || part.lifted) {
    const std::optional<Partial> state = settled(fold, carry);
    return state ? merge(fold, *state, part, reverse) : part;
  }
  // What comes before the row first: it is known sooner.
  std::optional<Partial> before = carry.rows;
  if (carry.state) before = behind_state(fold, *carry.state, std::move(before));
  return before ? merge(fold, *before, part, reverse) : part;
}

void ScanRow::pass(std::size_t fold, RowCarry& carry, const Partial& last, std::int64_t first,
                   std::int64_t row) {
  const bool later = segment_ == 0 && states_cost_more(fold) && !last.lifted;
  if (!later) {
    carry = {.state = carry_behind(fold, settled(fold, carry), last, first, row)};
    return;
  }
  carry.rows = carry.rows ? merge(fold, *carry.rows, last, reverse_[fold]) : last;
  if (++carry.count == kRowsAState) carry = {.state = settled(fold, carry)};
}

ValueId ScanRow::join(std::size_t fold, Prefixes within, int width, std::int64_t first,
                      RowCarry& carry) {
  const bool reverse = reverse_[fold], exclusive = exclusive_[fold];
  const Heads how = heads(width);
  std::vector<Partial>& prefixes = within.values;
  const bool behind_state = carry.state && how == Heads::none;
  const int lanes = within.lanes;
  const Partial nothing = tile_.neutral(fold, prefixes[0].lifted);
  Partial before = nothing;  // of each lane
  const std::int64_t row = std::int64_t{kWarpWidth} * width;
  if (!within.alone) {
    const bool crosses = how == Heads::none || row % segment_ != 0;  // segments cross rows
    const ValueId lane = lane_in_order(reverse);
    // Elements of its segment and of the row that come before a lane's first and last element.
    ValueId before_first = kNoValue, before_last = kNoValue, slot = kNoValue, since = kNoValue;
    if (how != Heads::none) {
      since = before_first = place(0, width, first, reverse);
      before_last = place(width - 1, width, first, reverse);
    }
    if (crosses && how != Heads::none) {
      slot = b_.mul(lane, b_.i32(width));
      before_first = b_.min(before_first, slot);
      before_last = b_.min(before_last, b_.add(slot, b_.i32(width - 1)));
    }
    Partial total = across_lanes(fold, within.total,
                                 {.unit = lanes,
                                  .width = width,
                                  .first = first,
                                  .before_last = before_last,
                                  .reverse = reverse});
    const int unit = lanes == 1 ? 1 : lanes * width;  // of the elements before
    const ValueId follows = how == Heads::none ? b_.compute(Op::ge, {lane, b_.i32(lanes)})
                                               : b_.compute(Op::ge, {before_first, b_.i32(unit)});
    // A lane's one element is in its total; a shift would cost more than it saves.
    const bool with_own = width == 1 && lanes == 1 && !exclusive && tile_.vector_lanes();
    before = with_own ? total : tile_.keep_where(fold, shuffled(total, lanes, reverse), follows);
    if (carry.state || carry.rows) {
      const Partial joined = behind(fold, carry, before);
      if (how == Heads::none) {
        before = joined;
      } else if (crosses) {
        before = choose(fold, b_.compute(Op::gt, {since, slot}), joined, before);
      }
    }
    if (crosses) pass(fold, carry, broadcast_last(total, reverse), first, row);
    if (tile_.fold_of(fold).tile) before = tile_.collapse(fold, std::move(before));
    if (with_own) {
      prefixes[0] = std::move(before);
      return finished(fold, prefixes, reverse, behind_state);
    }
    for (int i = 0; i < width; ++i) {
      Partial& prefix = prefixes[static_cast<std::size_t>(i)];
      prefix = choose(fold, no_head(0, i, width, first, reverse),
                      merge(fold, before, prefix, reverse), prefix);
    }
  }
  if (exclusive) {
    for (int i = width - 1; i >= 0; --i) {
      Partial value = i > 0           ? prefixes[static_cast<std::size_t>(i - 1)]
                      : !within.first ? before
                      : within.alone  ? *within.first
                                      : merge(fold, before, *within.first, reverse);
      if (how == Heads::inside_lanes && i % segment_ == 0) value = nothing;
      const ValueId inner = i > 0 ? no_head(i - 1, i, width, first, reverse) : kNoValue;
      if (inner != kNoValue) value = tile_.keep_where(fold, std::move(value), inner);
      prefixes[static_cast<std::size_t>(i)] = std::move(value);
    }
  }
  return finished(fold, prefixes, reverse, behind_state);
}

}  // namespace chainfold::codegen
