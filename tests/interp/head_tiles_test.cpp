// Folds over segments that heads begin, by tiles in which warps find them, in the interpreter:
// every program over lengths of every kind, and every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/program/print.hpp"
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
    expect_same_bits(graph, compiled, inputs, c);
  }
}

/// A condition, and what it says of element i of inputs whose values are `at(input, i)`.
struct Condition {
  const char* name;
  dsl::Partition partition;
  std::function<bool(const std::function<std::int64_t(std::size_t, std::int64_t)>& at,
                     std::int64_t i)>
      begins;
};

/// Conditions of every kind of input, of elements far before, and of more values than registers
/// hold beside a tile.
TEST(HeadTilesConditions, AreLookedAtOneByOne) {
  const auto t = input<std::int32_t>("t");
  const auto a = input<std::int64_t>("a"), b = input<std::int64_t>("b");
  const auto before = [](const auto& at, std::size_t of, std::int64_t i, std::int64_t far) {
    return i >= far ? at(of, i - far) : 7;
  };
  const Condition conditions[] = {
      {"lag over tiles", heads(t > lag(t, 1000, 7)),
       [&](const auto& at, std::int64_t i) { return at(0, i) > before(at, 0, i, 1000); }},
      {"two lags", heads(lag(t, 600, 7) == lag(t, 1201, 7)),
       [&](const auto& at, std::int64_t i) {
         return before(at, 0, i, 600) == before(at, 0, i, 1201);
       }},
      {"keys", heads(a != lag(a, 1, 7) || b != lag(b, 2, 7)),
       [&](const auto& at, std::int64_t i) {
         return at(0, i) != before(at, 0, i, 1) || at(1, i) != before(at, 1, i, 2);
       }},
      {"bits", heads(input<bool>("bits", as_bits) && t > 2),
       [](const auto& at, std::int64_t i) { return at(0, i) != 0 && at(1, i) > 2; }},
  };
  const auto x = input<std::int8_t>("x");
  for (const char* on : kTargets) {
    const codegen::Target target = codegen::parse_target(on);
    for (const Condition& condition : conditions) {
      const codegen::Graph graph =
          codegen::legalize(over(condition.partition, count(), sum(x), argmax(x)).graph(), target);
      const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
      ASSERT_EQ(plan->strategy, codegen::Strategy::head_tiles);
      const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
      const auto number_of = [&](std::string_view name) {
        for (std::size_t i = 0; i < graph.inputs.size(); ++i)
          if (graph.inputs[i].name == name) return i;
        return graph.inputs.size();
      };
      for (const std::int64_t n : {1, 700, 1024, 5000}) {
        SCOPED_TRACE(fmt::format("{} on {}, n {}", condition.name, on, n));
        const auto inputs = make_inputs(graph, n, Fill::whole, 11);
        // The condition's inputs come in the order of its nodes.
        std::vector<std::size_t> read;
        for (const char* name : {"bits", "t", "a", "b"})
          if (number_of(name) < graph.inputs.size()) read.push_back(number_of(name));
        const std::function<std::int64_t(std::size_t, std::int64_t)> at = [&](std::size_t input,
                                                                              std::int64_t i) {
          const Column& column = inputs[read[input]];
          return graph.inputs[read[input]].access == codegen::InputAccess::bits
                     ? static_cast<std::int64_t>(column.get(i) & 1)
                     : static_cast<std::int64_t>(
                           codegen::double_of_bits(column.type(), column.get(i)));
        };
        InterpCase c;
        c.elements = n;
        c.ragged = Ragged{};
        c.ragged->heads = true;
        auto& segments = c.ragged->segments;
        for (std::int64_t i = 0; i < n; ++i) {
          if (i > 0 && !condition.begins(at, i)) {
            ++segments.back().second;
          } else {
            segments.emplace_back(i, i + 1);
          }
        }
        const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, c);
        ASSERT_EQ(outputs[0].count(), static_cast<std::int64_t>(segments.size()));
        const Column& values = inputs[number_of("x")];
        for (std::size_t s = 0; s < segments.size(); ++s) {
          const auto [begin, end] = segments[s];
          std::int64_t sum = 0, best = begin;
          for (std::int64_t i = begin; i < end; ++i) {
            const auto value = static_cast<std::int8_t>(values.get(i));
            sum += value;
            if (value > static_cast<std::int8_t>(values.get(best))) best = i;
          }
          const auto row = static_cast<std::int64_t>(s);
          ASSERT_EQ(outputs[0].get(row), static_cast<Bits>(end - begin)) << row;
          ASSERT_EQ(static_cast<std::int64_t>(outputs[1].get(row)), sum) << row;
          ASSERT_EQ(outputs[2].get(row), static_cast<Bits>(best - begin)) << row;
        }
      }
    }
  }
}

/// A condition's nodes are looked at once, however many others read them.
TEST(HeadTilesConditions, OfSharedNodesAreShort) {
  auto h = let(input<std::int32_t>("t"));
  for (int i = 0; i < 40; ++i) h = let(h ^ (h >> 1));
  const codegen::Target target = codegen::parse_target("sm_90");
  const codegen::Graph graph =
      codegen::legalize(over(heads((h & 1) == 0), count()).graph(), target);
  const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
  EXPECT_LT(print(codegen::compile_plan(graph, target, *plan).program).size(), 1'000'000U);
}

}  // namespace
}  // namespace chainfold::test
