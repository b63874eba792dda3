#include "chainfold/codegen/lower/tile/row_tile.hpp"

#include <algorithm>
#include <utility>

namespace chainfold::codegen {

namespace {
/// Of a lane: half of its registers.
constexpr int kMostBytesAtOnce = 512;
}  // namespace

/// Whether a lane has a segment by itself, whose words it turns so that they begin with it.
/// Booleans are no parts of words.
bool RowTile::turns_words(const Graph& graph, const Plan& plan) {
  return plan.staged.straddle && plan.lanes_per_segment == 1 &&
         graph.inputs[0].type != DType::boolean;
}

RowTile::RowTile(Builder& builder, const Graph& graph, const Plan& plan)
    : b_(builder),
      plan_(plan),
      tile_(builder, graph, plan),
      lanes_(plan.lanes_per_segment),
      per_row_(kWarpWidth / plan.lanes_per_segment),
      loads_(turns_words(graph, plan) ? static_cast<int>((plan.segment - 1) / plan.load_width + 1)
                                      : plan.loads_a_lane()),
      span_(std::min(plan.rows, plan.lanes_per_segment)),
      merges_(graph, plan, span_) {
  for (const GraphInput& input : graph.inputs)
    row_bytes_ += loads_ * plan.load_width * size_of(input.type);
}

void RowTile::lower_tile(ValueId first, ValueId segments, const Sink& sink) {
  first_ = first;
  segments_ = segments;
  rows_.assign(static_cast<std::size_t>(plan_.rows), {});
  if (plan_.load_rows_first && in_one_batch()) {
    for (int u = 0; u < plan_.rows; ++u)
      rows_[static_cast<std::size_t>(u)] = load_row(u, 0, loads_);
  }
  for (int row = 0; row < plan_.rows; row += span_) {
    const Partials merged = merge_rows(row, static_cast<int>(merges_.pairs().size()));
    put_outputs(tile_.reduce_lanes(merged, merges_.left()), row * per_row_, sink);
  }
}

bool RowTile::in_one_batch() const {
  if (plan_.edges) return false;
  return plan_.segment <= static_cast<std::int64_t>(lanes_) * plan_.load_width * plan_.depth;
}

ValueId RowTile::first_segment(int u) {
  return b_.add(first_, b_.i64(static_cast<std::int64_t>(u) * per_row_));
}

/// The first element of row u, counted from the row itself where inputs have strides. A row of
/// which nothing exists points at the last segment instead. Its lanes are all masked, but some
/// CPUs are slow to mask what lies in no page.
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
  if (plan_.staged.straddle) return load_straddled(u, from, loads);
  const ValueId base = row_base(u);
  const int width = plan_.load_width;
  const ValueId mask = row_mask(u);
  const std::int64_t step = static_cast<std::int64_t>(lanes_) * width;
  const bool ragged = (from + loads) * step > plan_.segment;
  if (lanes_ == kWarpWidth) {
    const ValueId limit = ragged ? b_.add(base, b_.i64(plan_.segment)) : kNoValue;
    const auto whole = static_cast<int>(plan_.segment / step) - from;
    return tile_.load_batch(b_.add(base, b_.i64(from * step)), loads, limit, mask, base, whole);
  }
  std::vector<Loaded> row;
  for (int k = from; k < from + loads; ++k) {
    Address at{.base = b_.add(base, b_.i64(k * step)), .group = lanes_, .stride = plan_.segment};
    if (plan_.segment == step && !plan_.strided)
      at = {.base = at.base};  // groups without a gap: one run
    ValueId inside = kNoValue;
    if ((k + 1) * step > plan_.segment) {
      const ValueId within =
          b_.compute(Op::mul, {b_.compute(Op::rem, {b_.lane(), b_.i32(lanes_)}), b_.i32(width)});
      const auto left = static_cast<std::int32_t>(plan_.segment - k * step);
      inside = tile_.inside(within, b_.i32(left));
    }
    const ValueId position =
        tile_.uses_index() ? tile_.positions(b_.i64(k * step), lanes_, width) : kNoValue;
    row.push_back(tile_.load_inside(at, width, mask, inside, position, true));
  }
  return row;
}

/// The same where a segment begins within a load. Its lanes take loads from the boundary before it
/// on, and keep the elements that are its own.
std::vector<Loaded> RowTile::load_straddled(int u, int from, int loads) {
  const int width = plan_.load_width;
  const auto s = static_cast<std::int32_t>(plan_.segment);
  const std::int32_t row = u * per_row_ * s;
  const ValueId in_row = b_.mul(b_.div(b_.lane(), b_.i32(lanes_)), b_.i32(s));
  const ValueId start = b_.add(b_.add(in_row, b_.i32(row)), b_.convert(before_, DType::i32));
  const ValueId head = b_.compute(Op::bit_and, {start, b_.i32(width - 1)});
  if (turns_words(tile_.graph(), plan_)) return load_turned(b_.sub(start, head), head, from, loads);
  const ValueId turn = b_.mul(b_.rem(b_.lane(), b_.i32(lanes_)), b_.i32(width));
  const ValueId offset = b_.add(b_.sub(start, head), turn);
  Builder::Values steps;
  for (int i = 0; i < width; ++i) steps.push_back(b_.i32(i));
  std::vector<Loaded> tiles;
  for (int k = from; k < from + loads; ++k) {
    const int step = k * lanes_ * width;
    const ValueId place = b_.add(b_.sub(turn, head), b_.i32(step));  // within the segment
    const Address at{.base = b_.i64(step), .group = 1, .stride = 0, .offset = offset};
    const bool last = step + lanes_ * width > s;
    const ValueId mask = last ? b_.lt(place, b_.i32(s)) : kNoValue;
    const ValueId position = tile_.uses_index() ? b_.convert(place, DType::i64) : kNoValue;
    Loaded tile = tile_.load(at, width, mask, position);
    const ValueId places = k == 0 || last ? b_.add(place, b_.concat(steps)) : kNoValue;
    if (k == 0) tile.valid = b_.compute(Op::ge, {places, b_.i32(0)});
    if (last) {
      tile.valid = b_.both(tile.valid, b_.lt(places, b_.i32(s)));
      tile.mask = kNoValue;  // what it leaves out is not valid
    }
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

/// Of lanes that have a segment each: words that begin with it. `offset` is where its first load
/// begins, and `head` how many elements before it.
std::vector<Loaded> RowTile::load_turned(ValueId offset, ValueId head, int from, int loads) {
  const int width = plan_.load_width;
  const auto s = static_cast<std::int32_t>(plan_.segment);
  const auto load = [&](int k) {
    const Address at{.base = b_.i64(std::int64_t{k} * width), .group = 1, .offset = offset};
    // Behind the segment's last element there may be nothing to be read.
    const std::int32_t left = s - k * width;
    return tile_.load(at, width, left > 0 ? kNoValue : b_.lt(b_.i32(-left), head), kNoValue);
  };
  std::vector<Loaded> tiles;
  Loaded next = load(from);
  for (int k = from; k < from + loads; ++k) {
    Loaded tile = std::move(next);
    next = load(k + 1);
    for (std::size_t i = 0; i < tile.inputs.size(); ++i) {
      if (tile.inputs[i] != kNoValue)
        tile.inputs[i] = b_.funnel(tile.inputs[i], next.inputs[i], head);
    }
    const std::int32_t left = s - k * width;
    tile.mask = kNoValue;
    if (left < width) {
      Builder::Values own;
      for (int e = 0; e < width; ++e) own.push_back(b_.lt(b_.i32(e), b_.i32(left)));
      tile.valid = b_.splat(b_.concat(std::move(own)));
    }
    if (tile_.uses_index()) tile.position = b_.splat(b_.i64(std::int64_t{k} * width));
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

Partials RowTile::fold_row(int u) {
  Partials partials;
  const auto at_once = [&](const std::vector<Loaded>& row, int group) {
    tile_.set_pilots(row[0], lanes_);
    return tile_.fold_batch(row, group);
  };
  tile_.forget_pilots();
  if (plan_.mean_loads > 0 && in_one_batch()) {
    partials = at_once(load_row(u, 0, loads_), 0);
  } else if (!in_one_batch()) {
    const ValueId base = row_base(u);
    if (plan_.mean_loads > 0 && !plan_.edges)
      tile_.set_pilots(tile_.load_batch(base, 1, kNoValue, row_mask(u), base)[0], lanes_);
    partials = tile_.fold_range(base, b_.i64(plan_.segment), base, row_mask(u), b_.i32(0), 1);
  } else if (plan_.load_rows_first) {
    partials = at_once(rows_[static_cast<std::size_t>(u)], lanes_);
  } else if (is_at_once()) {
    partials = at_once(load_row(u, 0, loads_), lanes_);
  } else {
    partials = fold_in_turns(u);
  }
  return plan_.combine_states ? tile_.lift(std::move(partials))
                              : tile_.collapse(std::move(partials));
}

/// Whether all loads of a row are made before the first is used. In order they are one batch, whose
/// lanes end up with one run each. Moments that share a mean want to know all, as long as registers
/// hold them.
bool RowTile::is_at_once() const {
  if (loads_ <= plan_.loads_at_once) return true;
  if (tile_.ordered()) return lanes_ == kWarpWidth;
  return tile_.has_moments() && row_bytes_ <= kMostBytesAtOnce;
}

/// Few loads at once, and neighbours merged as soon as both are there. So little is alive at a
/// time, and the tree is as shallow as if all were merged at the end.
Partials RowTile::fold_in_turns(int u) {
  std::vector<std::pair<int, Partials>> waiting;  // with their heights in the tree
  auto merge_last = [&] {
    Partials right = std::move(waiting.back().second);
    waiting.pop_back();
    waiting.back().second = tile_.merge(waiting.back().second, right);
    ++waiting.back().first;
  };
  for (int from = 0; from < loads_; from += plan_.loads_at_once) {
    const int loads = std::min(plan_.loads_at_once, loads_ - from);
    waiting.emplace_back(0, tile_.fold_batch(load_row(u, from, loads)));
    while (waiting.size() > 1 && waiting.back().first == waiting[waiting.size() - 2].first)
      merge_last();
  }
  while (waiting.size() > 1) merge_last();
  return std::move(waiting.front().second);
}

/// Row u and those that differ from it in the bits of the first `merges` merges.
Partials RowTile::merge_rows(int u, int merges) {
  if (merges == 0) return fold_row(u);
  const int last = merges - 1;
  const Partials a = merge_rows(u, last), b = merge_rows(u + (1 << merges_.row_bit(last)), last);
  return tile_.pair_rows(a, b, merges_.pairs()[static_cast<std::size_t>(last)]);
}

/// Of `span_` rows from `offset` segments on; output p = u * per_row + k, row u's k-th segment,
/// goes to lane p.
void RowTile::put_outputs(const Partials& merged, int offset, const Sink& sink) {
  const int count = span_ * per_row_;
  std::vector<std::uint8_t> source(kWarpWidth);
  for (int p = 0; p < kWarpWidth; ++p) {
    const int from = p < count ? merges_.lane_of(p / per_row_, p % per_row_) : p;
    source[static_cast<std::size_t>(p)] = static_cast<std::uint8_t>(from);
  }
  ValueId mask = kNoValue;
  if (count < kWarpWidth) mask = b_.compute(Op::lt, {b_.lane(), b_.i32(count)});
  if (masked()) {
    const ValueId left = b_.sub(segments_, b_.add(first_, b_.i64(offset)));
    mask = b_.both(mask, b_.compute(Op::lt, {b_.convert(b_.lane(), DType::i64), left}));
  }
  const std::vector<ValueId> outputs = tile_.finish(merged, b_.i64(plan_.segment));
  const auto by_lanes = [&](ValueId value) {
    return b_.type(value).shape == Shape::lane ? b_.permute(value, source) : value;
  };
  const auto put = [&](ValueId exists) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sink(i, b_.i64(offset), by_lanes(outputs[i]), exists);
    return Builder::Values{};
  };
  // No sum of two values leaves the range whose rounded result does not.
  const Graph& graph = tile_.graph();
  const bool values = std::all_of(graph.folds.begin(), graph.folds.end(),
                                  [](const Fold& fold) { return fold.tile || !fold.guard; }) &&
                      std::all_of(graph.nodes.begin(), graph.nodes.end(),
                                  [](const Node& node) { return node.part == 0; });
  const bool holds = plan_.segment <= 2 && values;
  const ValueId exceeds = holds ? kNoValue : tile_.exceeds(merged);
  if (exceeds == kNoValue) {
    put(mask);
    return;
  }
  const auto put_both = [&] {
    const ValueId wanted = by_lanes(exceeds);
    put(b_.both(mask, b_.compute(Op::bit_not, {wanted})));
    put_by_elements(b_.both(mask, wanted), offset, count, sink);
    return Builder::Values{};
  };
  b_.branch(b_.any(exceeds), put_both, [&] { return put(mask); });
}

void RowTile::put_by_elements(ValueId wanted, int offset, int count, const Sink& sink) {
  const ValueId one = b_.i64(1), size = b_.i64(plan_.segment);
  const ValueId first = input_segment_ ? input_segment_() : first_;
  b_.loop(b_.i64(0), b_.i64(count), one, {}, [&](ValueId i, const Builder::Values&) {
    const ValueId lane = b_.compute(Op::eq, {b_.lane(), b_.convert(i, DType::i32)});
    const ValueId place = b_.add(b_.i64(offset), i), segment = b_.add(first, place);
    ValueId asked = b_.any(b_.both(wanted, lane));
    if (input_segments_ != kNoValue) asked = b_.both(asked, b_.lt(segment, input_segments_));
    b_.branch(
        asked,
        [&] {
          TileByElements elements(b_, tile_);
          TileLowering& tile = elements.tile();
          ValueId begin = b_.i64(0);
          if (plan_.strided) {
            tile.place_at_row(segment);
          } else {
            begin = b_.mul(segment, size);
          }
          const Partials folded = tile.reduce_lanes(
              tile.fold_range(begin, size, begin, kNoValue, b_.i32(0), 1), 1, kWarpWidth);
          const ValueId first_lane = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
          const std::vector<ValueId> outputs = tile.finish(folded, size);
          for (std::size_t o = 0; o < outputs.size(); ++o)
            sink(o, place, b_.splat(outputs[o]), first_lane);
          return Builder::Values{};
        },
        [] { return Builder::Values{}; });
    return Builder::Values{};
  });
}

}  // namespace chainfold::codegen
