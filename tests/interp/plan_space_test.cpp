// Plans of the whole space, not only the default ones, run by the interpreter and held against the
// reference.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/size_classes.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;

constexpr std::int64_t kSegments[] = {0, 1, 7, 8, 16, 24, 33, 64, 100, 255, 256, 1000, 4096};

class PlanSpaceRuns : public testing::TestWithParam<const char*> {};

TEST_P(PlanSpaceRuns, EveryPlanIsRight) {
  const TestProgram& tested = program(GetParam());
  std::size_t turn = 0;
  for (const char* target_name : {"sm_90", "sm_80", "sm_75", "cpu"}) {
    const codegen::Target target = codegen::parse_target(target_name);
    for (const std::int64_t segment : kSegments) {
      const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
      const auto space = plan_space(computation.graph(), target, {.segment = segment});
      // Every third plan of a target and size; sizes and targets shift which.
      for (std::size_t i = turn % (3 * kThin); i < space.size(); i += 3 * kThin) {
        ++turn;
        InterpCase c{.segment = segment,
                     .elements = segment == 0 ? static_cast<std::int64_t>(turn * 977 % 9001)
                                              : segment * (segment > 500 ? 3 : 37)};
        c.fill = tested.fills[turn % tested.fills.size()];
        c.seed = turn;
        c.chunks = turn % 4 == 3 ? 3 : 1;
        c.base_alignment = turn % 5 == 4 ? 2 * size_of(computation.graph().inputs[0].type) : 16;
        c.options.seed = turn;
        c.options.schedule = turn % 2 ? codegen::Schedule::random : codegen::Schedule::reversed;
        c.choice = space[i];
        SCOPED_TRACE(fmt::format("{} on {}, segment {}, {} elements of {}: {}", tested.name,
                                 target_name, segment, c.elements, name_of(c.fill),
                                 to_text(space[i])));
        if (!make_plan(computation.graph(), target,
                       {.segment = segment, .base_alignment = c.base_alignment}, space[i])) {
          ADD_FAILURE() << "a choice depends on the alignment";
          continue;
        }
        const Verdict verdict = check_interpreted(tested, target, c);
        ASSERT_EQ(verdict.problems, "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanSpaceRuns,
                         testing::Values("sum_f16", "sum_f32", "sum_i8", "sum_f64", "frames",
                                         "dot_f16", "variance_f32", "q6"),
                         [](const auto& info) { return std::string(info.param); });

/// Few long segments are a block's each or a cluster's; without clusters those are parts as ever.
TEST(FewLongSegments, AreRight) {
  std::size_t turn = 0;
  int clusters = 0, alone = 0;
  for (const char* name : {"sum_f16", "sum_f32", "sum_f64", "sum_i32"}) {
    const TestProgram& tested = program(name);
    for (const char* target_name : {"sm_90", "sm_75"}) {
      const codegen::Target target = codegen::parse_target(target_name);
      const int size = size_of(tested.over(whole()).graph().inputs[0].type);
      for (const std::int64_t bytes : {32 * 1024, 40'000, 64 * 1024, 140'000}) {
        if (++turn % kThin != 0) continue;
        const std::int64_t segment = bytes / size + static_cast<std::int64_t>(turn % 3);
        const std::int64_t count = 1 + static_cast<std::int64_t>(turn % 2);
        const codegen::Graph graph = tested.over(segments(segment)).graph();
        const std::int64_t most = size_class_of(graph, target, segment, segment * count);
        if (target.cluster_blocks == 1 && bytes > 128 * 1024) {
          EXPECT_EQ(most, 0) << name << " " << segment;
          continue;
        }
        ASSERT_GT(most, 0) << name << " " << segment;
        InterpCase c{.segment = segment, .elements = segment * count};
        c.choice = default_choice(graph, target, {.segment = segment, .size_limit = most});
        c.fill = tested.fills[turn % tested.fills.size()];
        c.seed = turn;
        c.base_alignment = turn % 4 == 3 ? size : 16;
        c.options.seed = turn;
        c.options.schedule = turn % 2 ? codegen::Schedule::random : codegen::Schedule::reversed;
        const auto plan = make_plan(
            graph, target, {.segment = segment, .base_alignment = c.base_alignment}, *c.choice);
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->launches, 1);
        (plan->parts.cluster > 0 ? clusters : alone) += 1;
        SCOPED_TRACE(fmt::format("{} on {}, {} segments of {}: {}", name, target_name, count,
                                 segment, to_text(*c.choice)));
        EXPECT_EQ(check_interpreted(tested, target, c).problems, "");
      }
    }
  }
  if (kThin == 1) {
    EXPECT_GT(clusters, 0);
    EXPECT_GT(alone, 0);
  }
}

}  // namespace
}  // namespace chainfold::test
