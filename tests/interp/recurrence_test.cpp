// Linear recurrences whose products leave every range, in the interpreter: by default plans of any
// target, and by any plan.
#include <gtest/gtest.h>

#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/recurrences.hpp"

namespace chainfold::test {
namespace {

class RecurrencesInterpreted : public testing::TestWithParam<std::size_t> {};

TEST_P(RecurrencesInterpreted, AreRight) {
  const RecurrenceCase& what = recurrence_cases()[GetParam()];
  std::uint64_t seed = 100 * GetParam();
  struct Shape {
    std::int64_t n, segment;
  };
  constexpr Shape kShapes[] = {{14'001, 0},      {5 * 7, 7},       {3 * 1001, 1001},
                               {2 * 6500, 6500}, {3 * 1000, 1000}, {5 * 260, 260}};
  for (const char* name : {"sm_75", "sm_90", "cpu"}) {
    const codegen::Target target = codegen::parse_target(name);
    SCOPED_TRACE(name);
    for (const Shape& shape : kShapes) {
      const bool backward = ++seed % 2 == 1;
      const DType type = seed % 5 == 4 ? DType::f64 : DType::f32;
      EXPECT_EQ(check_recurrence(what, type, shape.n, shape.segment, backward,
                                 plan_interpreter(target, 0)),
                "");
      EXPECT_EQ(check_recurrence(what, DType::f32, shape.n, shape.segment, !backward,
                                 plan_interpreter(target, seed)),
                "")
          << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrencesInterpreted,
                         testing::Range(std::size_t{0}, recurrence_cases().size()));

}  // namespace
}  // namespace chainfold::test
