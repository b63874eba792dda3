#include "chainfold/codegen/lower/tile/lane_scans.hpp"

namespace chainfold::codegen {

ValueId sum_so_far(Builder& b, ValueId value) {
  const DType type = b.type(value).elem;
  for (int distance = 1; distance < kWarpWidth; distance *= 2) {
    const ValueId reaches = b.compute(Op::ge, {b.lane(), b.i32(distance)});
    value = b.add(value, b.select(reaches, b.shuffle_up(value, distance), b.constant(type, 0)));
  }
  return value;
}

ValueId largest_so_far(Builder& b, ValueId value) {
  // Lanes without one so far below them receive what they have.
  for (int distance = 1; distance < kWarpWidth; distance *= 2)
    value = b.compute(Op::max, {value, b.shuffle_up(value, distance)});
  return value;
}

}  // namespace chainfold::codegen
