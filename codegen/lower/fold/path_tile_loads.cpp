// A part of PathTile: what a tile loads, and where elements and segments are.
#include <utility>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/fold/path_tile.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

Address PathTile::address_of(ValueId at, int width, int each) {
  if (!mirrored_) return {.base = at, .group = 1, .stride = each};
  return {.base = b_.sub(b_.sub(elements_, at), b_.i64(width)), .group = 1, .stride = -each};
}

ValueId PathTile::in_memory_order(ValueId value) {
  const int width = b_.type(value).width;
  if (!mirrored_ || width == 1) return value;
  Builder::Values elements;
  for (int i = width - 1; i >= 0; --i) elements.push_back(b_.extract(value, i));
  return b_.concat(std::move(elements));
}

void PathTile::begin(ValueId segment, ValueId element) {
  // Loads begin on their width in memory.
  ValueId past = b_.i64(0);
  if (plan_.load_width > 1) {
    const ValueId from = mirrored_ ? b_.sub(element, elements_) : element;
    past = b_.compute(Op::bit_and, {from, b_.i64(plan_.load_width - 1)});
  }
  origin_ = b_.sub(element, past);
  origin_segment_ = segment;
  stretch_first_ = i32_of(past);
  const auto near = [&](ValueId count) { return i32_of(b_.min(count, b_.i64(kFar))); };
  near_elements_ = near(b_.sub(elements_, origin_));
  near_segments_ = near(b_.sub(segments_, segment));
}

ValueId PathTile::base_of(ValueId element) {
  if (plan_.load_width == 1) return element;
  return b_.compute(Op::bit_and, {element, b_.i32(-plan_.load_width)});
}

Builder::Values PathTile::bounds_from(ValueId segment) {
  const ValueId exists = b_.lt(b_.add(segment, b_.lane()), near_segments_);
  const Address at{of_all(segment)};
  Builder::Values bounds{bounds_.begins(at, exists), bounds_.ends(at, exists)};
  for (ValueId& bound : bounds) bound = b_.splat(bound);
  return bounds;
}

Builder::Values PathTile::load_early(ValueId segment, ValueId element, ValueId items) {
  Builder::Values early = bounds_from(segment);
  if (!early_elements_) return early;
  const Builder::Values elements = load_anywhere(base_of(element), b_.add(element, items));
  for (const ValueId value : elements) early.push_back(b_.splat(value));
  return early;
}

ValueId PathTile::near_of(ValueId offset) {
  const ValueId from = b_.sub(offset, origin_);
  const ValueId near = i32_of(b_.min(from, b_.i64(kFar)));
  return b_.select(b_.lt(from, b_.i64(0)), b_.i32(-1), near);
}

Builder::Values PathTile::near_early(const Builder::Values& early) {
  return {near_of(early[0]), near_of(early[1])};
}

ValueId PathTile::next_segment(ValueId segment, ValueId at, ValueId diagonal,
                               const Builder::Values& near) {
  const auto item = [&](ValueId end, ValueId own) {
    return b_.add(b_.sub(end, stretch_first_), own);
  };
  const ValueId own = b_.add(segment, b_.lane());
  const ValueId before = b_.both(b_.lt(own, near_segments_), b_.lt(item(near[1], own), diagonal));
  const ValueId next = b_.add(segment, b_.count(before));
  const ValueId warp = b_.add(segment, b_.i32(kWarpWidth));
  return b_.branch_uniform(
      b_.lt(next, warp), [&] { return next; },
      [&] {
        const ValueId most = b_.min(b_.add(segment, b_.sub(diagonal, at)), near_segments_);
        const auto trips = static_cast<std::int32_t>(SegmentBounds::trips_of(tile_items(plan_)));
        return bounds_.search(
            diagonal, warp, most, b_.i32(trips), [&](ValueId first, ValueId step, ValueId there) {
              const Address from{.base = of_all(first), .group = 1, .step = i64_of(step)};
              const ValueId end = near_of(bounds_.ends(from, there));
              return item(end, b_.add(first, b_.mul(b_.lane(), step)));
            });
      });
}

/// A place in the tile, i32: one before the tile's first element, or behind its last, for what lies
/// further off.
ValueId PathTile::place_of(ValueId near, const Span& span) {
  const ValueId before = b_.sub(span.element, b_.i32(1));
  return b_.sub(b_.compute(Op::max, {before, b_.min(near, span.next_element)}), base_);
}

Builder::Values PathTile::near_at(ValueId first, const Span& span) {
  return b_.branch(
      b_.compute(Op::eq, {first, span.segment}), [&] { return span.near; },
      [&] { return near_early(bounds_from(first)); });
}

ValueId PathTile::extents_at(ValueId first, const Span& span) {
  return b_.branch(
      b_.compute(Op::eq, {first, span.segment}),
      [&] { return Builder::Values{b_.sub(span.early[1], span.early[0])}; },
      [&] {
        const Builder::Values bounds = bounds_from(first);
        return Builder::Values{b_.sub(bounds[1], bounds[0])};
      })[0];
}

/// Vectors from `first` on that lie anywhere in the input, as far as they begin before `end`.
Builder::Values PathTile::load_anywhere(ValueId first, ValueId end) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const std::vector<std::size_t> used = going_.used_inputs();
  const ValueId own = b_.mul(b_.lane(), b_.i32(each));
  // Lanes behind the tile load nothing, and what begins before its end may lie behind the input.
  const ValueId room =
      b_.min(b_.sub(b_.min(end, near_elements_), first), b_.i32(elements_a_row(plan_)));
  const ValueId begins = in_all(first);
  const auto load = [&](int element, int count) {
    const ValueId mask = b_.lt(b_.add(own, b_.i32(element)), room);
    return tile_.load(address_of(b_.add(begins, b_.i64(element)), count, each), count, mask,
                      kNoValue);
  };
  const auto vectors = [&] {
    Builder::Values values;
    for (int i = 0; i < each; i += width) {
      const Loaded some = load(i, width);
      for (const std::size_t input : used) values.push_back(some.inputs[input]);
    }
    return values;
  };
  const auto elements = [&] {
    Builder::Values values;
    for (int i = 0; i < each; i += width) {
      std::vector<Builder::Values> pieces(used.size());
      for (int j = 0; j < width; ++j) {
        const Loaded some = load(i + j, 1);
        for (std::size_t u = 0; u < used.size(); ++u) pieces[u].push_back(some.inputs[used[u]]);
      }
      for (Builder::Values& piece : pieces) values.push_back(b_.concat(std::move(piece)));
    }
    return values;
  };
  if (width == 1) return vectors();
  // A load that begins in the tile may reach beyond the inputs' end.
  const ValueId inside =
      b_.compute(Op::le, {b_.add(first, b_.i32(elements_a_row(plan_))), near_elements_});
  return b_.branch(inside, vectors, elements);
}

/// The tile's elements and no others: those of another tile may be stored meanwhile.
Builder::Values PathTile::load_own(ValueId row, const std::vector<std::size_t>& used) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const ValueId first = b_.add(in_all(base_), b_.mul(row, b_.i64(elements_a_row(plan_))));
  const ValueId place = first_of_lane(row);
  const ValueId behind = behind_;
  const auto inside = [&](int i) {
    const ValueId at = b_.add(place, b_.i32(i));
    return b_.both(b_.compute(Op::ge, {at, first_}), b_.lt(at, behind));
  };
  const auto load = [&](int i, int count, ValueId mask) {
    Loaded some =
        tile_.load(address_of(b_.add(first, b_.i64(i)), count, each), count, mask, kNoValue);
    for (const std::size_t input : used) some.inputs[input] = in_memory_order(some.inputs[input]);
    return some;
  };
  Builder::Values values;
  if (width == 1) {
    for (int i = 0; i < each; ++i) {
      const Loaded some = load(i, 1, inside(i));
      for (const std::size_t input : used) values.push_back(some.inputs[input]);
    }
    return values;
  }
  for (int i = 0; i < each; i += width) {
    const ValueId whole = b_.both(inside(i), inside(i + width - 1));
    const Loaded some = load(i, width, whole);
    const ValueId part = b_.both(b_.compute(Op::bit_or, {inside(i), inside(i + width - 1)}),
                                 b_.compute(Op::bit_not, {whole}));
    // A tile that is shorter than a load has neither of its ends.
    const ValueId any = b_.any(
        b_.compute(Op::bit_or, {part, b_.both(b_.lt(b_.add(place, b_.i32(i)), first_),
                                              b_.lt(behind, b_.add(place, b_.i32(i + width))))}));
    Builder::Values vectors;
    for (const std::size_t input : used) vectors.push_back(some.inputs[input]);
    const Builder::Values loaded = b_.branch(
        any,
        [&] {
          std::vector<Builder::Values> pieces(used.size());
          for (int j = i; j < i + width; ++j) {
            const ValueId mask = b_.both(inside(j), b_.compute(Op::bit_not, {whole}));
            const Loaded one = load(j, 1, mask);
            for (std::size_t u = 0; u < used.size(); ++u)
              pieces[u].push_back(
                  b_.select(whole, b_.extract(vectors[u], j - i), one.inputs[used[u]]));
          }
          Builder::Values all;
          for (Builder::Values& piece : pieces) all.push_back(b_.concat(std::move(piece)));
          return all;
        },
        [&] { return vectors; });
    values.insert(values.end(), loaded.begin(), loaded.end());
  }
  return values;
}

void PathTile::load_row(ValueId row, const Span& span, Row& loaded, ValueId head_at) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const std::vector<std::size_t> used = going_.used_inputs();
  Builder::Values values;
  if (early_elements_) {
    values.assign(span.early.begin() + 2, span.early.end());
  } else if (scanned_ != nullptr || mirrored_) {
    values = load_own(row, used);
  } else {
    values = load_anywhere(b_.add(base_, i32_of(b_.mul(row, b_.i64(elements_a_row(plan_))))),
                           span.next_element);
  }
  find_places(row, loaded, head_at);
  std::size_t next = 0;
  for (int i = 0; i < each; i += width) {
    Loaded load{.inputs = Builder::Values(graph_.inputs.size(), kNoValue), .width = width};
    for (const std::size_t input : used) load.inputs[input] = values[next++];
    if (tile_.uses_index()) load.position = positions_of(row, i, loaded);
    // A load's first elements may come before the tile's.
    if (width > 1 && i == 0) {
      Builder::Values counts;
      for (int j = 0; j < width; ++j)
        counts.push_back(b_.compute(Op::ge, {b_.add(first_of_lane(row), b_.i32(j)), first_}));
      load.valid = b_.concat(std::move(counts));
    }
    loaded.loads.push_back(std::move(load));
  }
}

ValueId PathTile::first_of_lane(ValueId row) {
  return b_.add(b_.mul(b_.lane(), b_.i32(elements_a_lane(plan_))),
                i32_of(b_.mul(row, b_.i64(elements_a_row(plan_)))));
}

}  // namespace chainfold::codegen
