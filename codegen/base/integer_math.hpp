// Powers of two.
#pragma once

#include <bit>
#include <cstdint>

namespace chainfold::codegen {

[[nodiscard]] constexpr bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}
/// The least n with 2^n >= value; 0 for values up to 1.
[[nodiscard]] constexpr int ceil_log2(std::int64_t value) {
  return value <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(value - 1));
}

/// The largest power of two that is not above `value`; at least 1.
[[nodiscard]] constexpr int floor_power_of_two(std::int64_t value) {
  return value <= 1 ? 1 : static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

/// The largest power of two up to `widest`, itself one, that divides `length`.
[[nodiscard]] constexpr int widest_divisor(std::int64_t length, int widest) {
  while (length % widest != 0) widest /= 2;
  return widest;
}

}  // namespace chainfold::codegen
