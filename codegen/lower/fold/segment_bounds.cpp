#include "chainfold/codegen/lower/fold/segment_bounds.hpp"

namespace chainfold::codegen {

BoundBuffers declare_bounds(Program& program, const Graph& graph) {
  const auto first = static_cast<int>(program.buffers.size());
  int index = static_cast<int>(graph.inputs.size());
  for (const GraphInput& bound : graph.partition.bounds) {
    program.buffers.push_back({"bound_" + std::to_string(index), bound.type, BufferRole::input,
                               index, size_of(bound.type), 0});
    ++index;
  }
  const bool pairs = graph.partition.bounds.size() > 1;
  return {.begins = first, .ends = pairs ? first + 1 : first, .shift = pairs ? 0 : 1};
}

ValueId SegmentBounds::raw_begins(const Address& at, ValueId mask) {
  return b_.convert(b_.load(buffers_.begins, at, 1, mask), DType::i64);
}

ValueId SegmentBounds::raw_ends(const Address& at, ValueId mask) {
  Address end = at;
  end.base = b_.add(at.base, b_.i64(buffers_.shift));
  return b_.convert(b_.load(buffers_.ends, end, 1, mask), DType::i64);
}

Address SegmentBounds::mirrored(const Address& at) {
  Address other{.base = mirrored_segment(at.base), .group = 1, .stride = -1};
  if (at.step != kNoValue) {
    other.stride = 0;
    other.step = b_.sub(b_.i64(0), at.step);
  }
  return other;
}

ValueId SegmentBounds::mirrored_segment(ValueId segment) {
  return b_.sub(b_.sub(segments_, b_.i64(1)), segment);
}

ValueId SegmentBounds::begins(const Address& at, ValueId mask) {
  return mirrored_ ? b_.sub(elements_, raw_ends(mirrored(at), mask)) : raw_begins(at, mask);
}

ValueId SegmentBounds::ends(const Address& at, ValueId mask) {
  return mirrored_ ? b_.sub(elements_, raw_begins(mirrored(at), mask)) : raw_ends(at, mask);
}

ValueId SegmentBounds::load_begin(ValueId segment) {
  return b_.convert(b_.load_uniform(buffers_.begins, segment), DType::i64);
}

ValueId SegmentBounds::load_end(ValueId segment) {
  const ValueId at = b_.add(segment, b_.i64(buffers_.shift));
  return b_.convert(b_.load_uniform(buffers_.ends, at), DType::i64);
}

ValueId SegmentBounds::any_begin(ValueId segment) {
  return mirrored_ ? b_.sub(elements_, load_end(mirrored_segment(segment))) : load_begin(segment);
}

ValueId SegmentBounds::any_end(ValueId segment) {
  return mirrored_ ? b_.sub(elements_, load_begin(mirrored_segment(segment))) : load_end(segment);
}

ValueId SegmentBounds::begin(ValueId segment) {
  return mirrored_ ? mirrored_offset(load_end(mirrored_segment(segment)))
                   : inside(load_begin(segment));
}

ValueId SegmentBounds::end(ValueId segment) {
  return mirrored_ ? mirrored_offset(load_begin(mirrored_segment(segment)))
                   : inside(load_end(segment));
}

ValueId SegmentBounds::inside(ValueId offset) {
  return b_.compute(Op::max, {b_.i64(0), b_.min(offset, elements_)});
}

void SegmentBounds::find_path() {
  first_ = begin(b_.i64(0));
  const ValueId last = end(b_.sub(segments_, b_.i64(1)));
  span_ = b_.compute(Op::max, {b_.i64(0), b_.sub(last, first_)});
}

/// Powers of a warp's width up to the length: each trip leaves a part of that.
ValueId SegmentBounds::trips(ValueId length) {
  constexpr int kMost = 8;
  ValueId count = b_.i64(0);
  for (std::int64_t power = 1, i = 0; i < kMost; ++i, power *= kWarpWidth)
    count = b_.add(count, b_.convert(b_.compute(Op::ge, {length, b_.i64(power)}), DType::i64));
  return count;
}

std::int64_t SegmentBounds::trips_of(std::int64_t length) {
  std::int64_t trips = 0;
  for (std::int64_t power = 1; length >= power; power *= kWarpWidth) ++trips;
  return trips;
}

ValueId SegmentBounds::search(ValueId diagonal, ValueId least, ValueId most) {
  return search(diagonal, least, most, trips(b_.sub(most, least)),
                [&](ValueId at, ValueId step, ValueId there) {
                  const ValueId own = b_.mul(b_.convert(b_.lane(), DType::i64), step);
                  const ValueId end = ends({.base = at, .group = 1, .step = step}, there);
                  return place(inside(end), b_.add(at, own));
                });
}

ValueId SegmentBounds::search(ValueId diagonal, ValueId least, ValueId most, ValueId trips,
                              const Places& places) {
  const DType type = b_.type(diagonal).elem;
  const auto number = [&](std::int64_t value) {
    return b_.constant(type, static_cast<std::uint64_t>(value));
  };
  const ValueId one = number(1);
  return b_.loop(b_.convert(b_.i64(0), type), trips, one, {least, most},
                 [&](ValueId, const Builder::Values& range) -> Builder::Values {
                   const ValueId low = range[0], high = range[1];
                   // Each lane looks at the last end of its share.
                   const ValueId share = b_.compute(
                       Op::max, {one, b_.div(b_.add(b_.sub(high, low), number(kWarpWidth - 1)),
                                             number(kWarpWidth))});
                   const ValueId at = b_.sub(b_.add(low, share), one);
                   const ValueId segment = b_.add(at, b_.mul(b_.convert(b_.lane(), type), share));
                   const ValueId there = b_.lt(segment, high);
                   const ValueId before = b_.both(there, b_.lt(places(at, share, there), diagonal));
                   const ValueId passed = b_.mul(b_.convert(b_.count(before), type), share);
                   const ValueId next = b_.add(low, passed);
                   return {next, b_.min(high, b_.sub(b_.add(next, share), one))};
                 })[0];
}

}  // namespace chainfold::codegen
