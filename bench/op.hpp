// The computations that are measured.
#pragma once

#include <cstdint>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold::bench {

/// mean_var and min_max have two outputs of one type; dot has two inputs; filtered_sum adds the
/// elements above zero, count_above counts them, any tells whether there is one; argmax and the
/// scan of it are indices within a segment. From inclusive_sum on they are scans, a value an
/// element: sum_behind is the running sum less the segment's, sum_both_ways the running sum and
/// that of what follows, backward; decay is the recurrence y = kDecay y + x.
enum class Op : std::uint8_t {
  sum,
  mean_rms,
  max,
  q6,
  mean_var,
  dot,
  min_max,
  filtered_sum,
  argmax,
  any,
  count_above,
  variance,
  sum_abs,
  logsumexp,
  inclusive_sum,
  exclusive_sum,
  inclusive_max,
  inclusive_argmax,
  sum_behind,
  sum_both_ways,
  decay,
};
const char* name_of(Op op);
/// The types of which folds of every type are measured.
constexpr bool is_measured(DType type) noexcept {
  switch (type) {
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
    case DType::i8:
    case DType::i32: return true;
    default: return false;
  }
}
constexpr bool is_scan(Op op) noexcept { return op >= Op::inclusive_sum; }
/// Whether elements depend on all of their segment.
constexpr bool knows_all(Op op) noexcept { return op == Op::sum_behind || op == Op::sum_both_ways; }
/// Whether a call of a peer computes it.
constexpr bool has_peers(Op op) noexcept { return op < Op::sum_behind; }
inline constexpr float kDecay = 0.875F;

}  // namespace chainfold::bench
