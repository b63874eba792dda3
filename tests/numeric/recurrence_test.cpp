// Linear recurrences on the CPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/cpu_test.hpp"
#include "chainfold/tests/support/recurrences.hpp"

namespace chainfold::test {
namespace {

class CpuRecurrences : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CpuRecurrences, AreRight) {
  const Executor cpu = kernel_executor(target("cpu"));
  const RecurrenceCase& what = recurrence_cases()[GetParam()];
  // Of forms, types and sizes some each.
  struct Shape {
    std::int64_t n, segment;
  };
  constexpr Shape kShapes[] = {{200'001, 0},  {30'000, 0},       {7 * 3001, 7},
                               {64 * 99, 64}, {50 * 1001, 1001}, {3 * 20'000, 20'000}};
  for (std::size_t s = 0; s < std::size(kShapes); ++s) {
    const bool backward = (s + GetParam()) % 2 == 1;
    const DType type = (s + GetParam()) % 3 == 2 ? DType::f64 : DType::f32;
    EXPECT_EQ(check_recurrence(what, type, kShapes[s].n, kShapes[s].segment, backward, cpu), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuRecurrences,
                         testing::Range(std::size_t{0}, recurrence_cases().size()));

class CpuRecurrence : public CpuTest {};

TEST_F(CpuRecurrence, GoesOnWhereItsLastYIsGiven) {
  auto x = input<float>("x");
  auto y0 = param<float>("y0");
  const Kernel kernel = compiled(over(whole(), linear_recurrence(0.5F, x, y0)));
  const std::vector<float> all = {8, 4, 2, 1, 0.5F, 3};
  const auto [at_once] = kernel.run<float>({{"x", all}, {"y0", 16.0F}});
  const auto [first] = kernel.run<float>({{"x", all.data(), 4}, {"y0", 16.0F}});
  const auto [then] = kernel.run<float>({{"x", all.data() + 4, 2}, {"y0", first.back()}});
  EXPECT_EQ(at_once, (std::vector<float>{16, 12, 8, 5, 3, 4.5F}));
  EXPECT_EQ(then, (std::vector<float>{3, 4.5F}));
}

}  // namespace
}  // namespace chainfold::test
