// Folds of values near the ends of their types, on the CPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/end_values.hpp"

namespace chainfold::test {
namespace {

class EndValues : public testing::TestWithParam<std::size_t> {};

TEST_P(EndValues, AreOrdinaryNumbers) {
  const Executor cpu = kernel_executor(target("cpu"));
  for (const std::int64_t n : {3, 7, 64, 1000, 4099, 40'000})
    EXPECT_EQ(check_end_case(end_cases()[GetParam()], n, cpu), "");
}

INSTANTIATE_TEST_SUITE_P(All, EndValues, testing::Range(std::size_t{0}, end_cases().size()));

}  // namespace
}  // namespace chainfold::test
