// Folds over segments that heads begin, by tiles in which warps find them, in the interpreter:
// every program over lengths of every kind, and every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/ragged.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

constexpr const char* kTargets[] = {"sm_75", "sm_90"};
constexpr int kAlignments[] = {16, 16, 8, 4, 2};
/// Several tiles and stretches, tiles and a place more, and few.
constexpr std::int64_t kCounts[] = {3000, 512, 1023, 1, 0, 2048};

InterpCase case_of(std::size_t turn, const TestProgram& tested) {
  InterpCase c;
  c.ragged = by_heads(make_ragged(kAllLengths[turn % std::size(kAllLengths)],
                                  kCounts[turn / 3 % std::size(kCounts)], turn + 1));
  c.fill = tested.fills[turn % tested.fills.size()];
  c.seed = turn + 1;
  c.base_alignment = kAlignments[turn % std::size(kAlignments)];
  c.options = options_of(turn);
  return c;
}

codegen::Graph by_heads_graph(const TestProgram& tested, const codegen::Target& target) {
  return codegen::legalize(tested.over(heads(input<bool>("begins"))).graph(), target);
}

using ProgramOnTarget = std::tuple<std::size_t, std::size_t>;
class HeadTiles : public testing::TestWithParam<ProgramOnTarget> {};

TEST_P(HeadTiles, AgreeWithTheReference) {
  const TestProgram& tested = programs()[std::get<0>(GetParam())];
  const codegen::Target target = codegen::parse_target(kTargets[std::get<1>(GetParam())]);
  const codegen::Graph graph = by_heads_graph(tested, target);
  codegen::PlanChoice choice = codegen::default_choice(graph, target, {});
  ASSERT_EQ(choice.strategy, codegen::Strategy::head_tiles);
  const std::size_t first = std::get<0>(GetParam()) * 5 + std::get<1>(GetParam()) * 3;
  for (std::size_t i = 0; i < 8u; i += kThin) {
    InterpCase c = case_of(first + i * 3, tested);
    // One stretch, a few, and one a tile.
    constexpr int kParts[] = {1, 3, 1 << 12};
    choice.parts = kParts[i % std::size(kParts)];
    codegen::PlanRequest request;
    request.base_alignment = c.base_alignment;
    if (make_plan(graph, target, request, choice)) c.choice = choice;
    const Verdict verdict = expect_right(tested, target, c);
    if (c.fill == Fill::extremes || c.fill == Fill::nonfinite || c.fill == Fill::near_ends)
      continue;
    EXPECT_EQ(verdict.unchecked, 0) << words(tested, target, c);
  }
}
INSTANTIATE_TEST_SUITE_P(All, HeadTiles,
                         testing::Combine(testing::Range<std::size_t>(0, programs().size()),
                                          testing::Range<std::size_t>(0, std::size(kTargets))),
                         [](const auto& info) {
                           return programs()[std::get<0>(info.param)].name + "_" +
                                  kTargets[std::get<1>(info.param)];
                         });

/// Every plan of the space, of folds with and without an order, with positions and lengths.
TEST(HeadTilesPlans, AgreeWithTheReference) {
  std::size_t turn = 0, plans = 0;
  for (const char* name : {"sum_f16", "sum_f32", "argmax_f32", "longest_run_f32", "basics_f64"}) {
    const TestProgram& tested = program(name);
    for (const char* on : kTargets) {
      const codegen::Target target = codegen::parse_target(on);
      const codegen::Graph graph = by_heads_graph(tested, target);
      for (const codegen::PlanChoice& choice : codegen::plan_space(graph, target, {})) {
        InterpCase c = case_of(++turn, tested);
        c.base_alignment = 16;
        c.choice = choice;
        expect_right(tested, target, c);
        ++plans;
      }
    }
  }
  EXPECT_GT(plans, 50u);
}

/// The bits are the same under every schedule.
TEST(HeadTilesBits, AreTheSameEveryTime) {
  for (const char* on : kTargets) {
    const codegen::Target target = codegen::parse_target(on);
    const codegen::Graph graph = codegen::legalize(
        over(heads(input<bool>("begins")), sum(input<float>("x")), mean(input<float>("x"))).graph(),
        target);
    const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    InterpCase c;
    c.ragged = by_heads(make_ragged(Lengths::giant, 4000, 3));
    c.elements = c.ragged->elements;
    auto inputs = make_inputs(graph, c.elements, Fill::normal, 3);
    set_heads(graph, *c.ragged, inputs);
    std::vector<Column> first;
    for (std::size_t turn = 0; turn < 4; ++turn) {
      c.options = options_of(turn);
      std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, c);
      if (first.empty()) first = std::move(outputs);
      for (std::size_t o = 0; o < outputs.size(); ++o)
        for (std::int64_t i = 0; i < outputs[o].count(); ++i)
          ASSERT_EQ(outputs[o].get(i), first[o].get(i)) << "value " << i << ", turn " << turn;
    }
  }
}

}  // namespace
}  // namespace chainfold::test
