// Folds of values near the ends of their types, in the interpreter: by default plans of any target,
// and by any plan.
#include <gtest/gtest.h>

#include "chainfold/tests/support/end_values.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

class EndValuesInterpreted : public testing::TestWithParam<std::size_t> {};

TEST_P(EndValuesInterpreted, AreOrdinaryNumbers) {
  const EndCase& what = end_cases()[GetParam()];
  std::uint64_t seed = GetParam();
  for (const char* name : {"sm_75", "sm_90", "cpu"}) {
    const codegen::Target target = codegen::parse_target(name);
    SCOPED_TRACE(name);
    for (const std::int64_t n : {3, 33, 1001})
      EXPECT_EQ(check_end_case(what, n, plan_interpreter(target, 0)), "");
    for (const std::int64_t n : {2, 24, 300})
      EXPECT_EQ(check_end_case(what, n, plan_interpreter(target, ++seed)), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EndValuesInterpreted,
                         testing::Range(std::size_t{0}, end_cases().size()));

}  // namespace
}  // namespace chainfold::test
