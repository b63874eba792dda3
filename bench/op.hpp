// The computations that are measured.
#pragma once

#include <cstdint>

namespace chainfold::bench {

/// mean_var and min_max have two outputs of one type; dot has two inputs; filtered_sum adds the
/// elements above zero. The last three are scans: a value an element.
enum class Op : std::uint8_t {
  sum,
  mean_rms,
  max,
  q6,
  mean_var,
  dot,
  min_max,
  filtered_sum,
  inclusive_sum,
  exclusive_sum,
  inclusive_max
};
const char* name_of(Op op);
constexpr bool is_scan(Op op) noexcept { return op >= Op::inclusive_sum; }

}  // namespace chainfold::bench
