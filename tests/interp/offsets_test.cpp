// Folds over segments that offsets tell, on every kind of target in the interpreter: every program
// over lengths of every kind, every plan, and offsets that are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
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

constexpr const char* kTargets[] = {"sm_75", "sm_90", "cpu"};
constexpr int kAlignments[] = {16, 16, 8, 4, 2};

/// Enough elements for several tiles and stretches, and few.
constexpr std::int64_t kCounts[] = {2000, 700, 1, 3000, 40, 0};

InterpCase case_of(std::size_t turn, const TestProgram& tested) {
  InterpCase c;
  c.ragged = make_ragged(kAllLengths[turn % std::size(kAllLengths)],
                         kCounts[turn / 3 % std::size(kCounts)], turn + 1, turn % 3 == 1,
                         turn % 5 == 2 ? DType::i32 : DType::i64);
  if (turn % 7 == 3) c.ragged = by_heads(*c.ragged);
  c.fill = tested.fills[turn % tested.fills.size()];
  c.seed = turn + 1;
  c.base_alignment = kAlignments[turn % std::size(kAlignments)];
  c.options = options_of(turn);
  return c;
}

using ProgramOnTarget = std::tuple<std::size_t, std::size_t>;
class Offsets : public testing::TestWithParam<ProgramOnTarget> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return programs()[std::get<0>(GetParam())]; }
  [[nodiscard]] codegen::Target target() const {
    return codegen::parse_target(kTargets[std::get<1>(GetParam())]);
  }
  [[nodiscard]] std::size_t turn() const {
    return std::get<0>(GetParam()) * 5 + std::get<1>(GetParam()) * 3;
  }
};

TEST_P(Offsets, AgreeWithTheReference) {
  const bool plain = tested().name.rfind("sum_", 0) == 0;
  for (std::size_t i = 0; i < (plain ? 16u : 4u); i += kThin) {
    const InterpCase c = case_of(turn() + i * (plain ? 1 : 7), tested());
    const Verdict verdict = expect_right(tested(), target(), c);
    if (c.fill == Fill::extremes || c.fill == Fill::nonfinite || c.fill == Fill::near_ends)
      continue;
    EXPECT_EQ(verdict.unchecked, 0) << words(tested(), target(), c);
  }
}

std::string name_of_case(const testing::TestParamInfo<ProgramOnTarget>& info) {
  return programs()[std::get<0>(info.param)].name + "_" + kTargets[std::get<1>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(All, Offsets,
                         testing::Combine(testing::Range<std::size_t>(0, programs().size()),
                                          testing::Range<std::size_t>(0, std::size(kTargets))),
                         name_of_case);

class OffsetsScans : public Offsets {
 protected:
  [[nodiscard]] const TestProgram& tested() const {
    return scan_programs()[std::get<0>(GetParam())];
  }
};

TEST_P(OffsetsScans, AgreeWithTheReference) {
  if (!scans_over_offsets(tested())) GTEST_SKIP() << "not supported over offsets";
  const bool plain = tested().name.find("sum") != std::string::npos;
  for (std::size_t i = 0; i < (plain ? 12u : 4u); i += kThin) {
    InterpCase c = case_of(turn() + i * (plain ? 1 : 7), tested());
    c.in_place = i % 3 == 2;
    const Verdict verdict = expect_right(tested(), target(), c);
    if (c.fill == Fill::extremes || c.fill == Fill::nonfinite || c.fill == Fill::near_ends)
      continue;
    if (!tested().of_some) {
      EXPECT_EQ(verdict.unchecked, 0) << words(tested(), target(), c);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, OffsetsScans,
                         testing::Combine(testing::Range<std::size_t>(0, scan_programs().size()),
                                          testing::Range<std::size_t>(0, std::size(kTargets))),
                         [](const auto& info) {
                           return scan_programs()[std::get<0>(info.param)].name + "_" +
                                  kTargets[std::get<1>(info.param)];
                         });

TEST(OffsetsScanPrograms, AreSupportedMostly) {
  const auto count =
      std::count_if(scan_programs().begin(), scan_programs().end(), scans_over_offsets);
  EXPECT_GT(2 * count, static_cast<std::ptrdiff_t>(scan_programs().size()));
}

/// Sums of elements near the ends of their types leave the range on the way, and come back.
TEST(OffsetsSums, StayInRangeOnTheWay) {
  std::size_t turn = 0;
  std::int64_t values = 0, unchecked = 0;
  for (const char* name :
       {"sum_f64", "sum_f32", "basics_f64", "basics_f32", "norm_f64", "dot_f32"}) {
    const TestProgram& tested = program(name);
    for (const char* on : kTargets) {
      const codegen::Target target = codegen::parse_target(on);
      const codegen::Graph graph =
          codegen::legalize(tested.over(offsets("offsets")).graph(), target);
      const auto space = codegen::plan_space(graph, target, {});
      for (const Lengths lengths : kAllLengths) {
        if (!is_taken(static_cast<std::int64_t>(++turn))) continue;
        InterpCase c = case_of(turn, tested);
        c.ragged = make_ragged(lengths, 3000, turn);
        c.fill = Fill::near_ends;
        c.base_alignment = 16;
        c.choice = space[turn % space.size()];
        const Verdict verdict = expect_right(tested, target, c);
        values += verdict.values;
        unchecked += verdict.unchecked;
      }
    }
  }
  EXPECT_LT(unchecked, values / 2);
}

/// Every plan of the space, of folds with and without an order and with positions.
TEST(OffsetsPlans, AgreeWithTheReference) {
  std::size_t turn = 0, plans = 0;
  for (const char* name : {"sum_f16", "sum_f32", "argmax_f32", "longest_run_f32", "scan_sum_f32"}) {
    const TestProgram& tested = program(name);
    for (const char* on : kTargets) {
      const codegen::Target target = codegen::parse_target(on);
      const codegen::Graph graph =
          codegen::legalize(tested.over(offsets("offsets")).graph(), target);
      for (const codegen::PlanChoice& choice : codegen::plan_space(graph, target, {})) {
        if (++turn % kThin != 0) continue;
        InterpCase c = case_of(turn, tested);
        c.base_alignment = 16;
        c.choice = choice;
        // Plans that pad are of segments that offsets tell, not heads.
        if (c.ragged->heads && choice.strategy == codegen::Strategy::padded) continue;
        expect_right(tested, target, c);
        ++plans;
      }
    }
  }
  EXPECT_GT(plans, 60u / kThin);
}

/// The bits are the same under every schedule.
TEST(OffsetsBits, AreTheSameEveryTime) {
  for (const char* on : kTargets) {
    const codegen::Target target = codegen::parse_target(on);
    const codegen::Graph graph = codegen::legalize(
        over(offsets("offsets"), sum(input<float>("x")), mean(input<float>("x"))).graph(), target);
    const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    InterpCase c;
    c.ragged = make_ragged(Lengths::giant, 4000, 3);
    c.elements = c.ragged->elements;
    const auto inputs = make_inputs(graph, c.elements, Fill::normal, 3);
    expect_same_bits(graph, compiled, inputs, c);
  }
}

/// One wrong offset: where it is, and what it holds.
struct Wrong {
  std::size_t array = 0, place = 0;
  std::int64_t value = 0, told = 0;
};

/// Folds on a target: by the default plan, or sums of halves by a plan.
struct WrongOn {
  const char* name;
  const char* target;
  const char* plan = "";
};
void PrintTo(const WrongOn& on, std::ostream* out) { *out << on.name; }
constexpr WrongOn kWrongOn[] = {{"sm_75", "sm_75"},
                                {"sm_90", "sm_90"},
                                {"cpu", "cpu"},
                                {"padded", "sm_90", "padded warps=2 depth=2 chain=1"}};

class WrongOffsets : public testing::TestWithParam<WrongOn> {};

/// Nothing is written, memory is kept to, and the first wrong offset is told.
TEST_P(WrongOffsets, WriteNothing) {
  const codegen::Target target = codegen::parse_target(GetParam().target);
  const bool pinned = *GetParam().plan != '\0';
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const bool pairs : {false, true}) {
    Ragged ragged = make_ragged(Lengths::constant, 3200, 5, pairs);
    const std::int64_t n = ragged.elements;
    std::vector<Wrong> all;
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, std::size_t{50}}) {
      const auto at = static_cast<std::int64_t>(place);
      // Of segments that overlap the earlier one is told.
      const std::int64_t below = pairs && place > 0 ? at - 1 : at;
      all.push_back({0, place, -1, below});
      all.push_back({0, place, kLeast, below});
      const bool from_zero = ragged.segments[0].first == 0;
      if (place > 0 && !pairs) all.push_back({0, place, 0, place == 1 && from_zero ? -1 : at});
      all.push_back({0, place, n + 1, pairs ? at : place == 0 ? 1 : at});
      all.push_back({0, place, kMost, pairs ? at : place == 0 ? 1 : at});
      if (pairs) all.push_back({1, place, ragged.segments[place].first - 1, at});
      if (pairs) all.push_back({1, place, n, at});
    }
    const Computation halves = over(ragged.partition(), sum(input<f16>("x")));
    const Computation floats =
        over(ragged.partition(), sum(input<float>("x")), argmin(input<float>("x")));
    const codegen::Graph graph = codegen::legalize((pinned ? halves : floats).graph(), target);
    const auto plan = make_plan(graph, target, {},
                                pinned ? codegen::parse_choice(GetParam().plan)
                                       : codegen::default_choice(graph, target, {}));
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    const auto inputs = make_inputs(graph, n, Fill::normal, 3);
    std::size_t turn = 0;
    for (const Wrong& wrong : all) {
      SCOPED_TRACE(fmt::format("{} array {}, place {}: {}", GetParam().name, wrong.array,
                               wrong.place, wrong.value));
      InterpCase c;
      c.ragged = ragged;
      c.elements = n;
      c.options = options_of(++turn);
      // The segments as they would be read.
      auto& segments = c.ragged->segments;
      if (pairs) {
        (wrong.array == 0 ? segments[wrong.place].first : segments[wrong.place].second) =
            wrong.value;
      } else {
        segments[wrong.place].first = wrong.value;
      }
      const bool is_wrong = wrong.told >= 0;
      std::vector<Column> outputs;
      const LaunchStatus status = interpret_ragged(graph, compiled, inputs, c, outputs);
      ASSERT_EQ(status.wrong_offset, wrong.told);
      EXPECT_EQ(status.segments, static_cast<std::int64_t>(segments.size()));
      for (const Column& output : outputs) {
        EXPECT_TRUE(output.sentinel_intact());
        std::int64_t poisoned = 0;
        for (std::size_t i = 0; i < output.bytes(); ++i)
          poisoned += output.data()[i] == std::byte{0x5A} ? 1 : 0;
        if (is_wrong) {
          EXPECT_EQ(poisoned, static_cast<std::int64_t>(output.bytes()));
        } else {
          EXPECT_LT(poisoned, static_cast<std::int64_t>(output.bytes()) / 2);
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, WrongOffsets, testing::ValuesIn(kWrongOn),
                         [](const auto& info) { return std::string(info.param.name); });

/// Of segments that heads tell no more is written than there is room for, and all are told.
TEST(Heads, KeepToTheRoomOfOutputs) {
  for (const char* on : kTargets) {
    const codegen::Target target = codegen::parse_target(on);
    const codegen::Graph graph = codegen::legalize(
        over(heads(input<bool>("begins")), sum(input<float>("x")), count()).graph(), target);
    const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    for (const std::int64_t room : {-1000, -1, 0, 3}) {
      InterpCase c;
      c.ragged = by_heads(make_ragged(Lengths::short_, 3000, 7));
      c.elements = c.ragged->elements;
      const auto segments = static_cast<std::int64_t>(c.ragged->segments.size());
      c.room = std::max(room, -segments);
      auto inputs = make_inputs(graph, c.elements, Fill::whole, 3);
      set_heads(graph, *c.ragged, inputs);
      std::vector<Column> outputs;
      const LaunchStatus status = interpret_ragged(graph, compiled, inputs, c, outputs);
      EXPECT_EQ(status.segments, segments) << on << ", room " << room;
      EXPECT_EQ(status.wrong_offset, -1);
      for (const Column& output : outputs) {
        ASSERT_EQ(output.count(), segments + c.room);
        EXPECT_TRUE(output.sentinel_intact());
      }
      for (std::int64_t i = 0; i < outputs[1].count(); ++i) {
        const bool told = i < segments;
        const auto& segment = c.ragged->segments[static_cast<std::size_t>(told ? i : 0)];
        const Bits expected =
            told ? static_cast<Bits>(segment.second - segment.first) : Bits{0x5A5A5A5A5A5A5A5A};
        ASSERT_EQ(outputs[1].get(i), expected) << on << ", room " << room << ", value " << i;
      }
    }
  }
}

/// Segments as the condition has them, of elements before and parameters: on every target.
TEST(Heads, ComeFromElementsBefore) {
  for (const char* on : kTargets) {
    const codegen::Target target = codegen::parse_target(on);
    const auto t = input<std::int32_t>("t");
    const auto far = heads(lag(t * 2, 3, 5) > t + lag(t, 1, 7) || t == param<std::int32_t>("p"));
    const codegen::Graph graph = codegen::legalize(over(far, count()).graph(), target);
    const auto plan = make_plan(graph, target, {}, codegen::default_choice(graph, target, {}));
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    for (const std::int64_t n : {0, 1, 2, 3, 4, 31, 33, 1000, 5000}) {
      auto inputs = make_inputs(graph, n, Fill::whole, 11);
      const auto at = [&](std::int64_t i) { return static_cast<std::int32_t>(inputs[0].get(i)); };
      InterpCase c;
      c.elements = n;
      c.ragged = Ragged{};
      c.ragged->heads = true;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t third = i >= 3 ? at(i - 3) * 2 : 5, first = i >= 1 ? at(i - 1) : 7;
        if (i > 0 && !(third > at(i) + first || at(i) == 4)) {
          ++c.ragged->segments.back().second;
        } else {
          c.ragged->segments.emplace_back(i, i + 1);
        }
      }
      const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {4}, c);
      ASSERT_EQ(outputs[0].count(), static_cast<std::int64_t>(c.ragged->segments.size()));
      for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
        const auto& [begin, end] = c.ragged->segments[static_cast<std::size_t>(i)];
        ASSERT_EQ(outputs[0].get(i), static_cast<Bits>(end - begin)) << on << ", n " << n;
      }
    }
  }
}

}  // namespace
}  // namespace chainfold::test
