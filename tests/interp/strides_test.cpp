// Segments with gaps between them, in every strategy that takes them: interpreted over memory whose
// gaps hold noise, and held against the reference over the same elements without gaps.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/choose/parts.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Strategy;

class Strides : public testing::TestWithParam<const char*> {};

TEST_P(Strides, EveryPlanReadsItsRows) {
  const TestProgram& tested = program(GetParam());
  std::mt19937_64 random(20261123);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  int rows = 0, parts = 0, wide = 0;
  constexpr int kTurns = thinned(110);
  for (int turn = 0; turn < kTurns; ++turn) {
    InterpCase c{.segment =
                     pick({1, 2, 7, 8, 16, 24, 33, 64, 100, 255, 256, 1000, 1001, 4096, 9000})};
    c.elements = c.segment * pick({0, 1, 3, c.segment > 500 ? 5 : 37});
    c.gaps = {pick({0, 1, 3, 8, 16, 24}), pick({0, 5, 8, 64})};
    const codegen::Target target = codegen::parse_target(turn % 3 == 2   ? "cpu"
                                                         : turn % 3 == 1 ? "sm_75"
                                                                         : "sm_90");
    const Computation computation = tested.over(segments(c.segment));
    const codegen::Graph& graph = computation.graph();
    const int size = size_of(graph.inputs[0].type);
    c.base_alignment = pick({16, 16, 8, size});
    if (c.base_alignment < size) continue;
    const codegen::PlanRequest request{
        .segment = c.segment, .base_alignment = alignment_of(graph, c), .strided = true};
    const auto space = plan_space(graph, target, {.segment = c.segment, .strided = true});
    c.choice = space[random() % space.size()];
    if (turn % 4 == 3) c.choice = parts_choice(graph, target, request);
    const auto plan = make_plan(graph, target, request, *c.choice);
    ASSERT_TRUE(plan) << "a choice depends on the alignment";
    EXPECT_NE(plan->strategy, Strategy::staged);
    c.fill = tested.fills[random() % tested.fills.size()];
    c.seed = random();
    c.options.seed = random();
    c.options.schedule = static_cast<codegen::Schedule>(random() % 3);
    SCOPED_TRACE(fmt::format("{} on {}: segment {}, gap {}, {} elements of {}, aligned to {}: {}",
                             tested.name, target.name, c.segment, c.gaps[0], c.elements,
                             name_of(c.fill), c.base_alignment, to_text(*c.choice)));
    try {
      ASSERT_EQ(check_interpreted(tested, target, c).problems, "");
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    rows += plan->strategy == Strategy::rows;
    parts += plan->strategy == Strategy::parts;
    wide += plan->load_width > 1;
  }
  if (kThin > 1) return;  // chance decides what so few turns come upon
  EXPECT_GT(rows, 20);
  EXPECT_GT(parts, 10);
  EXPECT_GT(wide, 10);
}

INSTANTIATE_TEST_SUITE_P(All, Strides,
                         testing::Values("sum_f16", "sum_f32", "sum_i8", "frames", "dot_f16",
                                         "variance_f32", "q6", "argmax_f32", "index_i16",
                                         "longest_run_f32", "ordered_beside_f16"),
                         [](const auto& info) { return std::string(info.param); });

/// A plan for dense segments knows nothing of strides, and one with strides is never staged.
TEST(StridePlans, AreTheirOwn) {
  const Computation computation = program("sum_f16").over(segments(64));
  const codegen::Graph& graph = computation.graph();
  const codegen::Target target = codegen::gpu_target(90);
  const auto staged = staged_choice(graph, target, {.segment = 64});
  ASSERT_TRUE(staged);
  EXPECT_TRUE(make_plan(graph, target, {.segment = 64}, *staged));
  EXPECT_FALSE(make_plan(graph, target, {.segment = 64, .strided = true}, *staged));
  const codegen::Compiled dense = codegen::compile_graph(graph, target, {.segment = 64});
  const codegen::Compiled gaps =
      codegen::compile_graph(graph, target, {.segment = 64, .strided = true});
  EXPECT_EQ(print(dense.program).find("stride_"), std::string::npos);
  EXPECT_NE(print(gaps.program).find("param stride_0: stride 0 i64"), std::string::npos);
}

}  // namespace
}  // namespace chainfold::test
