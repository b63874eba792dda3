// The published constants of TPC-H query 6, on days since 1970 and scaled integers.
#pragma once

#include <cstdint>

namespace chainfold::bench::query6_limits {

inline constexpr std::int64_t kShipFrom = 8766, kShipTo = 9131;
inline constexpr std::int64_t kDiscountFrom = 5, kDiscountTo = 7, kQuantityBelow = 2400;

}  // namespace chainfold::bench::query6_limits
