// Folds over segments that offsets tell, on the GPU: every program over lengths of every kind by
// run() and launch(), other plans, wrong offsets, and the same bits every time.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/on_device.hpp"
#include "chainfold/tests/support/ragged.hpp"

namespace chainfold::test {
namespace {

class GpuOffsets : public testing::TestWithParam<std::size_t> {};

void check_turns(const TestProgram& tested, std::size_t number) {
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t turn = number + 3 * i;
    const std::int64_t counts[] = {100'000, 3000, 20'000};
    Ragged ragged = make_ragged(kAllLengths[turn % std::size(kAllLengths)], counts[turn % 3],
                                turn + 1, turn % 3 == 1, turn % 5 == 2 ? DType::i32 : DType::i64);
    if (turn % 4 == 3) ragged = by_heads(ragged);
    const Verdict verdict = check_ragged_on_device(tested, ragged, tested.fills[0], turn + 1,
                                                   static_cast<int>(turn % 4));
    EXPECT_EQ(verdict.problems, "") << tested.name << ", turn " << turn;
    if (!tested.of_some) {
      EXPECT_EQ(verdict.unchecked, 0) << tested.name << ", turn " << turn;
    }
  }
}

TEST_P(GpuOffsets, AgreeWithTheReference) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  check_turns(programs()[GetParam()], GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, GpuOffsets, testing::Range(std::size_t{0}, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

class GpuOffsetsScans : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuOffsetsScans, AgreeWithTheReference) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const TestProgram& tested = scan_programs()[GetParam()];
  if (!scans_over_offsets(tested)) GTEST_SKIP() << "not supported over offsets";
  check_turns(tested, GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, GpuOffsetsScans,
                         testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

TEST(GpuOffsetsPlans, AgreeWithTheReference) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  std::size_t turn = 0;
  for (const char* name : {"sum_f16", "argmax_f32", "longest_run_f32", "scan_sum_f32"}) {
    const TestProgram& tested = program(name);
    const Target gpu = target("gpu");
    const codegen::Graph graph = codegen::legalize(tested.over(offsets("offsets")).graph(), gpu);
    for (const codegen::PlanChoice& choice : codegen::plan_space(graph, gpu, {})) {
      if (++turn % 5 != 0) continue;
      const Ragged ragged =
          make_ragged(kAllLengths[turn / 5 % std::size(kAllLengths)], 50'000, turn);
      const Verdict verdict =
          check_ragged_on_device(tested, ragged, tested.fills[0], turn, 0, to_text(choice));
      EXPECT_EQ(verdict.problems, "") << name << ", " << to_text(choice);
    }
  }
}

/// Wrong offsets write nothing and are told; the bits of right ones are the same every time.
TEST(GpuSmallOffsets, AreToldAndRepeatable) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Computation computation = over(offsets("offsets"), sum(input<float>("x")));
  const codegen::Graph& graph = computation.graph();
  const Kernel kernel = compile(computation, {.target = target("gpu")});
  const Ragged ragged = make_ragged(Lengths::giant, 60'000, 9);
  const auto inputs = make_inputs(graph, ragged.elements, Fill::normal, 9);
  const auto values = static_cast<std::int64_t>(ragged.segments.size());
  std::vector<Column> bounds = ragged.bounds();
  std::string problems;
  DeviceLaunch right(kernel, graph, inputs, {}, ragged.elements, values, 0, {}, 1, bounds);
  std::vector<Column> first;
  for (int i = 0; i < 1000; ++i) {
    right.poison_outputs();
    kernel.launch(right.args());
    std::vector<Column> now = right.results(problems);
    if (i == 0) {
      first = std::move(now);
    } else {
      ASSERT_EQ(std::memcmp(now[0].data(), first[0].data(), now[0].bytes()), 0);
    }
  }
  const std::int64_t place = values / 2;
  bounds[0].set(place, bounds[0].get(place + 1) + 1);
  DeviceLaunch wrong(kernel, graph, inputs, {}, ragged.elements, values, 0, {}, 1, bounds);
  wrong.poison_outputs();
  kernel.launch(wrong.args());
  static_cast<void>(wrong.results(problems));
  EXPECT_EQ(wrong.status().wrong_offset, place + 1);
  EXPECT_EQ(wrong.outputs()[0].damage(true), "");
  EXPECT_EQ(problems, "");
}

}  // namespace
}  // namespace chainfold::test
