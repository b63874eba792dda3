// Smallest and largest elements' places, on the GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "chainfold/tests/support/on_device.hpp"
#include "chainfold/tests/support/places.hpp"

namespace chainfold::test {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                            DType::i8,  DType::u16, DType::i32, DType::u64};

class GpuPlaces : public testing::TestWithParam<DType> {};

TEST_P(GpuPlaces, AreTheFirstOnes) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Executor gpu = kernel_executor(target("gpu"));
  for (const std::int64_t n : {0, 7, 64, 1000, 4099, 40'000})
    EXPECT_EQ(check_places(GetParam(), n, gpu), "");
}

TEST_P(GpuPlaces, AreTheFirstOnesSoFar) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Executor gpu = kernel_executor(target("gpu"));
  for (const std::int64_t n : {0, 7, 64, 1000, 4099})
    EXPECT_EQ(check_running_places(GetParam(), n, gpu), "");
}

INSTANTIATE_TEST_SUITE_P(All, GpuPlaces, testing::ValuesIn(kTypes));

}  // namespace
}  // namespace chainfold::test
