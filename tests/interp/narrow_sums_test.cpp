// Sums of integers that lanes add in 32 bits where that holds what a load brings, and of such that
// it does not hold.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/places.hpp"

namespace chainfold::test {
namespace {

/// The sum of 64 equal elements.
template <class E>
std::int64_t sum_of(const E& element, DType type, double value, const Target& target) {
  std::vector<Column> inputs;
  inputs.emplace_back(type, 64);
  for (std::int64_t i = 0; i < 64; ++i) inputs[0].set_double(i, value);
  const Computation what = over(segments(64), sum(element));
  return static_cast<std::int64_t>(plan_interpreter(target, 0)(what, inputs, 64)[0].get(0));
}

TEST(NarrowSums, HoldWhatElementsMayBe) {
  const auto h = input<f16>("x");
  const auto f = input<float>("x");
  const auto b = input<std::int8_t>("x");
  const auto u = input<std::uint16_t>("x");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const Target& target :
       {codegen::gpu_target(75), codegen::gpu_target(90), codegen::cpu_target(4, "znver4")}) {
    EXPECT_EQ(sum_of(cast<std::int32_t>(h), DType::f16, HUGE_VAL, target), 64 * kMost);
    EXPECT_EQ(sum_of(cast<std::int32_t>(h), DType::f16, -HUGE_VAL, target), -64 * (kMost + 1));
    EXPECT_EQ(sum_of(cast<std::uint32_t>(f), DType::f32, HUGE_VAL, target), 64 * (2 * kMost + 1));
    EXPECT_EQ(sum_of(cast<std::uint32_t>(b), DType::i8, -1, target), 64 * (2 * kMost + 1));
    EXPECT_EQ(sum_of(abs(b), DType::i8, -100, target), 6400);
    EXPECT_EQ(sum_of(u * u, DType::u16, 65535, target), 64 * (std::int64_t{65535} * 65535));
    EXPECT_EQ(sum_of(cast<std::int32_t>(b > 0), DType::i8, 1, target), 64);
  }
}

}  // namespace
}  // namespace chainfold::test
