// Folds that need their order, at every segment size and on every kind of target, interpreted with
// adversarial schedules, alignments and pieces, and held against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/scalar_folds.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Schedule;

constexpr const char* kTargets[] = {"sm_75", "sm_90", "cpu"};
constexpr Schedule kSchedules[] = {Schedule::in_order, Schedule::reversed, Schedule::random};
constexpr int kAlignments[] = {16, 16, 4, 1};

class FoldOrder : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  [[nodiscard]] const ScalarFold& fold() const { return scalar_folds()[std::get<0>(GetParam())]; }
  [[nodiscard]] const char* target() const { return kTargets[std::get<1>(GetParam())]; }

  void check(const InterpCase& c) const {
    SCOPED_TRACE(fmt::format("{} on {}, segment {}, {} elements of {}, aligned to {}, {} chunks",
                             fold().program, target(), c.segment, c.elements, name_of(c.fill),
                             c.base_alignment, c.chunks));
    const Computation computation =
        program(fold().program).over(c.segment > 0 ? segments(c.segment) : whole());
    const codegen::Graph& graph = computation.graph();
    const codegen::Compiled compiled =
        codegen::compile_graph(graph, codegen::parse_target(target()),
                               {.segment = c.segment, .base_alignment = c.base_alignment});
    const auto inputs = make_inputs(graph, c.elements, c.fill, c.seed);
    const auto outputs = interpret_graph(graph, compiled, inputs, {}, c);
    EXPECT_EQ(compare(fold(), inputs, outputs, c.segment, c.elements), "");
  }
};

TEST_P(FoldOrder, IsThatOfTheElements) {
  std::size_t turn = std::get<0>(GetParam()) + std::get<1>(GetParam());
  const auto& fills = program(fold().program).fills;
  for (const std::int64_t segment : kOrderSizes) {
    ++turn;
    const std::int64_t count = segment > 2000 ? 2 : segment > 200 ? 5 : 37;
    InterpCase c{.segment = segment,
                 .elements = segment == 0 ? 20011 : segment * count,
                 .fill = fills[turn % fills.size()],
                 .seed = turn};
    c.base_alignment = kAlignments[turn % 4];
    c.chunks = turn % 3 == 0 ? 3 : 1;
    c.options = {.schedule = kSchedules[turn % 3], .seed = turn, .resident_blocks = 3};
    check(c);
  }
}

TEST_P(FoldOrder, SurvivesPartsAndPieces) {
  std::int64_t turn = 0;
  for (const std::int64_t elements : {0, 1, 5, 1023, 40009}) {
    if (elements == 0 && fold().program.rfind("argmax", 0) == 0) continue;  // tested below
    if (elements == 0 && fold().program.rfind("last_even", 0) == 0) continue;
    for (const int chunks : {1, 4}) {
      if (!is_taken(++turn)) continue;
      InterpCase c{.segment = 0, .elements = elements, .chunks = chunks};
      c.options = {.schedule = Schedule::random, .seed = 7, .resident_blocks = 4};
      check(c);
    }
  }
  InterpCase c{.segment = 131072 + 7, .elements = 2 * (131072 + 7), .chunks = 3};
  c.options.schedule = Schedule::reversed;
  check(c);
}

INSTANTIATE_TEST_SUITE_P(All, FoldOrder,
                         testing::Combine(testing::Range(std::size_t{0}, scalar_folds().size()),
                                          testing::Range(std::size_t{0}, std::size(kTargets))),
                         [](const auto& info) {
                           return fmt::format("{}_on_{}",
                                              scalar_folds()[std::get<0>(info.param)].program,
                                              kTargets[std::get<1>(info.param)]);
                         });

TEST(FoldOrderPlaces, NothingHasNoIndex) {
  const TestProgram& tested = program("argmax_f32");
  for (const char* target : kTargets) {
    const Verdict verdict = check_interpreted(tested, codegen::parse_target(target), {});
    EXPECT_EQ(verdict.problems, "") << target;
    EXPECT_EQ(verdict.values, 1);
  }
}

/// Ties of argmin and argmax, NaN among them, at places in different lanes, loads and warps.
TEST(FoldOrderPlaces, TiesGoToTheSmallestIndex) {
  auto x = input<float>("x");
  for (const char* target : kTargets) {
    for (const std::int64_t n : {40, 1000, 5000, 150000}) {
      const Computation computation = over(segments(n), argmin(x), argmax(x));
      const codegen::Graph& graph = computation.graph();
      const codegen::Compiled compiled =
          codegen::compile_graph(graph, codegen::parse_target(target), {.segment = n});
      std::vector<Column> inputs;
      inputs.emplace_back(DType::f32, n);
      auto expect = [&](std::int64_t low, std::int64_t high) {
        const auto outputs =
            interpret_graph(graph, compiled, inputs, {}, {.segment = n, .elements = n});
        EXPECT_EQ(static_cast<std::int64_t>(outputs[0].get(0)), low) << target << ", " << n;
        EXPECT_EQ(static_cast<std::int64_t>(outputs[1].get(0)), high) << target << ", " << n;
      };
      for (std::int64_t i = 0; i < n; ++i) inputs[0].set_double(0 + i, 1);
      expect(0, 0);
      for (const std::int64_t i : {n - 1, n / 2, n / 2 + 1, n / 3}) inputs[0].set_double(i, -1);
      expect(n / 3, 0);
      for (const std::int64_t i : {n - 2, n - 5}) inputs[0].set_double(i, std::nan(""));
      expect(n - 5, n - 5);
      for (std::int64_t i = 0; i < n; ++i) inputs[0].set_double(i, i % 2 ? 0.0 : -0.0);
      expect(0, 0);
      for (std::int64_t i = 0; i < n; ++i) inputs[0].set_double(i, i % 2 ? HUGE_VAL : -HUGE_VAL);
      expect(0, 1);
    }
  }
}

}  // namespace
}  // namespace chainfold::test
