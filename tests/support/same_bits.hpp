// Values of two executions, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>

namespace chainfold::test {

/// Bit for bit, but for the kind of a NaN.
template <class T>
void expect_same(T got, T wanted, const std::string& where) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got)) << where << got;
      return;
    }
  }
  EXPECT_EQ(std::memcmp(&got, &wanted, sizeof(T)), 0) << where << got << ", not " << wanted;
}

}  // namespace chainfold::test
