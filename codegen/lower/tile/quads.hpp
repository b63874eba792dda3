// Quads: data as operand A of a matrix instruction, a lane's load in the fragment as it came from
// memory (QuadLayout). Four lanes share rows of A. So the 4 * load_width neighbours that a quad has
// loaded are summed among each other: all of them, or each with those before it.
//
// Prefixes. Half h of each lane's elements is a row of A. U gives their prefixes among that half of
// the quad's elements, `held` a lane, two an instruction. What lies in the other half is one number
// for all elements of a half. The lanes' before take one instruction more (before_lanes), which
// also gives all lanes the quad's total. The lane's own is the last prefix of its first half. So
// 256 elements of 16 bits take three m16n8k16, none with another's result.
#pragma once

#include <vector>

#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

/// Sums among the elements that a quad has loaded, in the accumulator's type.
struct QuadPrefixes {
  std::vector<ValueId> prefixes;  ///< of each of the lane's elements, in memory's order
  ValueId first = kNoValue;       ///< of what lies before the lane's first element in the scan's
                                  ///< direction; none where segments lie within lanes
  ValueId total = kNoValue;       ///< of the quad; none where segments lie within it
  /// Not finite where an element of the quad is not; it may be where sums overflow.
  ValueId probe = kNoValue;
};

/// A lane's load as an A fragment of `mma_row`.
ValueId data_as_a(Builder& b, int mma_row, ValueId elements);
/// The sum of the quad's elements, in all its lanes.
ValueId quad_total(Builder& b, int mma_row, ValueId a);
/// `segment`: elements of a segment, which divide those of a quad; 0: a quad is of one segment.
QuadPrefixes quad_prefixes(Builder& b, int mma_row, ValueId a, std::int64_t segment, bool reverse);

}  // namespace chainfold::codegen
