#include "chainfold/codegen/lower_row_tile.hpp"

#include <algorithm>

#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {

namespace {
/// Loads of one segment that a lane holds before it adds them up, where it has many: enough to hide
/// the latency of shared memory, few enough for registers.
constexpr int kLoadsAtOnce = 16;
}  // namespace

RowTile::RowTile(Builder& builder, const Graph& graph, const Plan& plan)
    : b_(builder),
      graph_(graph),
      plan_(plan),
      tile_(builder, graph, plan),
      lanes_(plan.lanes_per_segment),
      per_row_(kWarpWidth / plan.lanes_per_segment),
      loads_(plan.loads_a_lane()) {}

void RowTile::lower_tile(ValueId first, ValueId segments, const Sink& sink,
                         const std::function<void()>& loaded) {
  first_ = first;
  segments_ = segments;
  rows_.assign(static_cast<std::size_t>(plan_.rows), {});
  const bool ahead = plan_.load_rows_first && in_one_batch();
  if (ahead) {
    for (int u = 0; u < plan_.rows; ++u)
      rows_[static_cast<std::size_t>(u)] = load_row(u, 0, loads_);
    if (loaded) loaded();
  }
  const int span = std::min(plan_.rows, lanes_);
  std::vector<Partials> groups;
  for (int group = 0; group * span < plan_.rows; ++group) {
    Partials merged = merge_rows(group * span, span);
    merged = tile_.reduce_lanes(std::move(merged), span, lanes_);
    put_outputs(merged, group * span * per_row_, span * per_row_, sink);
  }
  if (!ahead && loaded) loaded();
}

bool RowTile::in_one_batch() const {
  if (plan_.edges) return false;
  return plan_.segment <= static_cast<std::int64_t>(lanes_) * plan_.load_width * plan_.depth;
}

ValueId RowTile::first_segment(int u) {
  return b_.add(first_, b_.i64(static_cast<std::int64_t>(u) * per_row_));
}

/// The first element of row u, counted from the row itself where inputs have strides. A row of
/// which nothing exists points at the last segment instead: its lanes are all masked, but some
/// processors are slow to mask what lies in no page.
ValueId RowTile::row_base(int u) {
  ValueId segment = first_segment(u);
  if (masked()) segment = b_.min(segment, b_.sub(segments_, b_.i64(1)));
  if (plan_.strided) {
    tile_.place_at_row(segment);
    return b_.i64(0);
  }
  return b_.mul(segment, b_.i64(plan_.segment));
}

/// Lanes of row u whose segment exists.
ValueId RowTile::row_mask(int u) {
  if (!masked()) return kNoValue;
  const ValueId left = b_.sub(segments_, first_segment(u));
  const ValueId group = b_.convert(b_.compute(Op::div, {b_.lane(), b_.i32(lanes_)}), DType::i64);
  return b_.lt(group, left);
}

/// Loads [from, from + loads) of row u.
std::vector<Loaded> RowTile::load_row(int u, int from, int loads) {
  const ValueId base = row_base(u);
  const int width = plan_.load_width;
  const ValueId mask = row_mask(u);
  const std::int64_t step = static_cast<std::int64_t>(lanes_) * width;
  const bool ragged = (from + loads) * step > plan_.segment;
  if (lanes_ == kWarpWidth) {
    const ValueId limit = ragged ? b_.add(base, b_.i64(plan_.segment)) : kNoValue;
    return tile_.load_batch(b_.add(base, b_.i64(from * step)), loads, limit, mask, base);
  }
  std::vector<Loaded> row;
  for (int k = from; k < from + loads; ++k) {
    Address at{.base = b_.add(base, b_.i64(k * step)), .group = lanes_, .stride = plan_.segment};
    if (plan_.segment == step && !plan_.strided)
      at = {.base = at.base};  // groups without a gap: one run
    ValueId lanes_mask = mask;
    if ((k + 1) * step > plan_.segment) {
      const ValueId within =
          b_.compute(Op::mul, {b_.compute(Op::rem, {b_.lane(), b_.i32(lanes_)}), b_.i32(width)});
      const auto left = static_cast<std::int32_t>(plan_.segment - k * step);
      lanes_mask = b_.both(mask, b_.lt(within, b_.i32(left)));
    }
    const ValueId position =
        tile_.uses_index() ? tile_.positions(b_.i64(k * step), lanes_, width) : kNoValue;
    row.push_back(tile_.load(at, width, lanes_mask, position, true));
  }
  return row;
}

Partials RowTile::fold_row(int u) {
  Partials partials;
  if (!in_one_batch()) {
    const ValueId base = row_base(u);
    partials = tile_.fold_range(base, b_.i64(plan_.segment), base, row_mask(u), b_.i32(0), 1);
  } else if (plan_.load_rows_first) {
    partials = tile_.fold_batch(rows_[static_cast<std::size_t>(u)]);
  } else if (lanes_ == kWarpWidth && tile_.ordered()) {  // each lane's loads make one run
    partials = tile_.fold_batch(load_row(u, 0, loads_));
  } else {
    std::vector<Partials> parts;
    for (int from = 0; from < loads_; from += kLoadsAtOnce)
      parts.push_back(tile_.fold_batch(load_row(u, from, std::min(kLoadsAtOnce, loads_ - from))));
    partials = tile_.merge_all(std::move(parts));
  }
  return plan_.combine_states ? tile_.lift(std::move(partials))
                              : tile_.collapse(std::move(partials));
}

Partials RowTile::merge_rows(int u, int span) {
  if (span == 1) return fold_row(u);
  const Partials low = merge_rows(u, span / 2), high = merge_rows(u + span / 2, span / 2);
  return tile_.pair_rows(low, high, span / 2);
}

/// Lane k * lanes + u holds row u's k-th segment; output p = u * per_row + k goes to lane p.
void RowTile::put_outputs(const Partials& merged, int offset, int count, const Sink& sink) {
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int p = 0; p < kWarpWidth; ++p) {
    source[static_cast<std::size_t>(p)] =
        static_cast<std::uint8_t>(p < count ? (p % per_row_) * lanes_ + p / per_row_ : p);
  }
  ValueId mask = kNoValue;
  if (count < kWarpWidth) mask = b_.compute(Op::lt, {b_.lane(), b_.i32(count)});
  if (masked()) {
    const ValueId left = b_.sub(segments_, b_.add(first_, b_.i64(offset)));
    mask = b_.both(mask, b_.compute(Op::lt, {b_.convert(b_.lane(), DType::i64), left}));
  }
  const std::vector<ValueId> outputs = tile_.finish(merged, b_.i64(plan_.segment));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ValueId value = outputs[i];
    if (b_.type(value).shape == Shape::lane) value = b_.permute(value, source);
    sink(i, offset, value, mask);
  }
}

}  // namespace chainfold::codegen
