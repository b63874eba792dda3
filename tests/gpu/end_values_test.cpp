// Folds of values near the ends of their types, on the GPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/end_values.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

class GpuEndValues : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuEndValues, AreOrdinaryNumbers) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Executor gpu = kernel_executor(target("gpu"));
  for (const std::int64_t n : {3, 64, 1000, 40'000})
    EXPECT_EQ(check_end_case(end_cases()[GetParam()], n, gpu), "");
}

INSTANTIATE_TEST_SUITE_P(All, GpuEndValues, testing::Range(std::size_t{0}, end_cases().size()));

}  // namespace
}  // namespace chainfold::test
