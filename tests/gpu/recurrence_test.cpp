// Linear recurrences on the GPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/on_device.hpp"
#include "chainfold/tests/support/recurrences.hpp"

namespace chainfold::test {
namespace {

class GpuRecurrences : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuRecurrences, AreRight) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Executor gpu = kernel_executor(target("gpu"));
  const RecurrenceCase& what = recurrence_cases()[GetParam()];
  struct Shape {
    std::int64_t n, segment;
  };
  constexpr Shape kShapes[] = {
      {4'000'001, 0},     {30'000, 0},        {7 * 3001, 7},        {64 * 999, 64},
      {500 * 1001, 1001}, {256 * 4096, 4096}, {9 * 20'000, 20'000}, {3 * 500'001, 500'001},
      {600 * 1000, 1000}, {501 * 260, 260}};
  for (std::size_t s = 0; s < std::size(kShapes); ++s) {
    const bool backward = (s + GetParam()) % 2 == 1;
    const DType type = (s + GetParam()) % 4 == 3 ? DType::f64 : DType::f32;
    EXPECT_EQ(check_recurrence(what, type, kShapes[s].n, kShapes[s].segment, backward, gpu), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuRecurrences,
                         testing::Range(std::size_t{0}, recurrence_cases().size()));

TEST(GpuRecurrence, MeetsNoInfinityInFortyMillions) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Executor gpu = kernel_executor(target("gpu"));
  for (const std::size_t which : {0U, 1U}) {
    EXPECT_EQ(check_recurrence(recurrence_cases()[which], DType::f32, 40'000'000, 0, false, gpu),
              "");
  }
}

}  // namespace
}  // namespace chainfold::test
