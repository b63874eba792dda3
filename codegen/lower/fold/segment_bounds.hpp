// SegmentBounds: the arrays that tell where segments begin and end (Partition::bounds), in a
// program, and the search for a diagonal of the merge path through ends of segments and elements.
//
// The path. Items are the elements from the first segment's begin to the last one's end, and the
// ends of all segments. An end comes before the element that stands at it. Item d lies behind s
// ends and e elements, d = s + e. So any stretch of items is as much work as any other of its
// length, however elements are shared out (Merrill and Garland, 2016, section 3).
//
// Mirrored, everything is counted from the other end: segment 0 is the last one, and begins at the
// elements' end. Backward scans are forward ones of that.
#pragma once

#include <cstdint>
#include <functional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Buffers of a program, which every launch's SegmentBounds reads.
struct BoundBuffers {
  int begins = 0, ends = 0;
  std::int64_t shift = 0;  ///< elements from a segment's begin to its end in one array
  [[nodiscard]] bool pairs() const { return begins != ends; }
};
/// Declares the partition's arrays behind the program's other buffers.
BoundBuffers declare_bounds(Program& program, const Graph& graph);

/// What one launch reads of them. All values are i64.
class SegmentBounds {
 public:
  /// `elements` and `segments` are uniform; there is a segment.
  SegmentBounds(Builder& builder, const BoundBuffers& buffers, ValueId elements, ValueId segments,
                bool mirrored = false)
      : b_(builder),
        buffers_(buffers),
        elements_(elements),
        segments_(segments),
        mirrored_(mirrored) {}

  /// A lane's segment is `at`'s; as they stand in memory, never mirrored.
  ValueId raw_begins(const Address& at, ValueId mask);
  ValueId raw_ends(const Address& at, ValueId mask);
  /// The same, mirrored, of offsets that have been checked.
  ValueId begins(const Address& at, ValueId mask);
  ValueId ends(const Address& at, ValueId mask);
  /// Of one segment, uniform, in [0, elements].
  ValueId begin(ValueId segment);
  ValueId end(ValueId segment);
  /// The same as they stand in memory, any number, but mirrored.
  ValueId any_begin(ValueId segment);
  ValueId any_end(ValueId segment);

  /// Reads the first element of all segments and how many items there are: before what follows.
  void find_path();
  [[nodiscard]] ValueId first() const { return first_; }
  [[nodiscard]] ValueId items() const { return b_.add(span_, segments_); }
  [[nodiscard]] ValueId span() const { return span_; }  ///< elements of the path
  /// The place of an end among the items: `end` and its segment are of any one shape.
  ValueId place(ValueId end, ValueId segment) { return b_.add(b_.sub(end, first_), segment); }
  /// Ends before item `diagonal`, of which `least` to `most` may be.
  ValueId search(ValueId diagonal, ValueId least, ValueId most);
  /// The places of ends of lanes' segments, from `at` on and `step` apart, where `there`.
  using Places = std::function<ValueId(ValueId at, ValueId step, ValueId there)>;
  /// The same by `trips` trips, each of which leaves a 32nd. All numbers are of one type.
  ValueId search(ValueId diagonal, ValueId least, ValueId most, ValueId trips,
                 const Places& places);
  /// Trips for a range of so many.
  static std::int64_t trips_of(std::int64_t length);

 private:
  ValueId inside(ValueId offset);
  /// Where segments and elements are from the other end.
  Address mirrored(const Address& at);
  ValueId mirrored_segment(ValueId segment);
  ValueId load_begin(ValueId segment);
  ValueId load_end(ValueId segment);
  ValueId mirrored_offset(ValueId offset) { return b_.sub(elements_, inside(offset)); }
  ValueId trips(ValueId length);

  Builder& b_;
  BoundBuffers buffers_;
  ValueId elements_, segments_, first_ = kNoValue, span_ = kNoValue;
  bool mirrored_;
};

}  // namespace chainfold::codegen
