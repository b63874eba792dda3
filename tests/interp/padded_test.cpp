// The published way for irregular segments, in the interpreter: lengths on both sides of a square's
// rows, elements that belong to nobody, and numbers that must not meet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/ragged.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

constexpr const char* kPlans[] = {"padded warps=1 depth=1 chain=1",
                                  "padded warps=4 depth=4 chain=1",
                                  "padded warps=2 depth=2 chain=0"};
constexpr const char* kTargets[] = {"sm_75", "sm_80", "sm_90"};

/// Segments of these lengths, of pairs with gaps between them.
Ragged of_lengths(const std::vector<std::int64_t>& lengths, bool pairs, DType type) {
  Ragged ragged;
  ragged.pairs = pairs;
  ragged.type = type;
  std::int64_t at = 3;
  for (const std::int64_t length : lengths) {
    ragged.segments.emplace_back(at, at + length);
    at += length + (pairs ? 5 : 0);
  }
  ragged.elements = at + 7;
  return ragged;
}

/// A group's segments in turn, so many in all.
std::vector<std::int64_t> in_turn(const std::vector<std::int64_t>& lengths, std::size_t count) {
  std::vector<std::int64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(lengths[i % lengths.size()]);
  return all;
}

InterpCase case_of(Ragged ragged, std::size_t turn) {
  InterpCase c;
  c.ragged = std::move(ragged);
  c.elements = c.ragged->elements;
  c.accuracy = Accuracy::as_published;
  c.choice = codegen::parse_choice(kPlans[turn % std::size(kPlans)]);
  c.seed = turn + 1;
  c.base_alignment = turn % 2 == 0 ? 16 : 2;
  c.options = options_of(turn);
  return c;
}

TEST(Padded, LengthsAroundARow) {
  const std::vector<std::int64_t> kLengths[] = {
      {16},
      {16, 32, 256},
      {15, 17, 1},
      {0, 31, 33, 0, 255, 257},
      {2, 0, 1, 3, 1000, 1, 0, 2, 1, 0, 0, 1, 4, 1, 2, 1, 1},  // a giant among tiny ones
      {0},
  };
  std::size_t turn = 0;
  for (const auto& lengths : kLengths) {
    for (const std::size_t count : {1u, 15u, 16u, 17u, 70u}) {
      for (const bool pairs : {false, true}) {
        for (const char* name : {"sum_f16", "sum_bf16", "sum_to_f16"}) {
          const std::string_view word(name);
          const bool bf16 = word.ends_with("bf16");
          if (!is_taken(static_cast<std::int64_t>(++turn))) continue;
          InterpCase c = case_of(
              of_lengths(in_turn(lengths, count), pairs, turn % 3 == 0 ? DType::i32 : DType::i64),
              turn);
          c.fill = turn % 2 == 0 ? Fill::whole : Fill::normal;
          const codegen::Target target = codegen::parse_target(bf16 ? "sm_90" : kTargets[turn % 3]);
          const Verdict verdict = expect_right(program(name), target, c);
          EXPECT_EQ(verdict.unchecked, 0) << words(program(name), target, c);
          EXPECT_GE(verdict.values, static_cast<std::int64_t>(count));
        }
      }
    }
  }
}

/// What is computed of a sum may ask how long its segment is.
Computation sums_and_lengths(const dsl::Partition& partition) {
  const auto total = sum(input<f16>("x"));
  return over(partition, total, total + cast<float>(count()));
}

/// Sums over segments by a plan on its target, under a schedule.
std::vector<double> sums(const Ragged& ragged, const Column& elements, std::size_t by,
                         std::size_t turn, LaunchStatus& status) {
  const codegen::Graph graph = sums_and_lengths(ragged.partition()).graph();
  const codegen::Target target = codegen::parse_target(kTargets[by]);
  const InterpCase c = case_of(ragged, turn);
  const auto plan =
      make_plan(graph, target, {.accuracy = c.accuracy}, codegen::parse_choice(kPlans[by]));
  const codegen::Compiled compiled = codegen::compile_plan(graph, target, plan.value());
  std::vector<Column> inputs, outputs;
  inputs.push_back(make_column(DType::f16, elements.count(), Fill::whole, 1));
  for (std::int64_t i = 0; i < elements.count(); ++i) inputs[0].set(i, elements.get(i));
  InterpCase run = c;
  run.options.arch = target.arch;
  status = interpret_ragged(graph, compiled, inputs, run, outputs);
  EXPECT_TRUE(outputs[0].sentinel_intact() && outputs[1].sentinel_intact());
  std::vector<double> values;
  for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
    const auto& [begin, end] = ragged.segments[static_cast<std::size_t>(i)];
    const auto value = [&](std::size_t o) {
      return static_cast<float>(codegen::double_of_bits(DType::f32, outputs[o].get(i)));
    };
    if (!std::isnan(value(0))) {
      EXPECT_EQ(value(1), value(0) + static_cast<float>(end - begin));
    }
    values.push_back(value(0));
  }
  return values;
}

/// Whatever lies between segments counts nowhere, and no segment sees another one's NaN.
TEST(Padded, ElementsCountInTheirSegmentAlone) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t turn = 0; turn < 9; ++turn) {
    const Ragged ragged =
        of_lengths(in_turn({5, 0, 16, 40, 33}, 37), true, turn % 2 == 0 ? DType::i64 : DType::i32);
    Column elements(DType::f16, ragged.elements);
    for (std::int64_t i = 0; i < elements.count(); ++i) elements.set_double(i, kNan);
    for (std::size_t s = 0; s < ragged.segments.size(); ++s) {
      const auto& [begin, end] = ragged.segments[s];
      for (std::int64_t i = begin; i < end; ++i)
        elements.set_double(i, s == 13 && i == end - 1 ? kNan : 2);
    }
    LaunchStatus status;
    const std::vector<double> found = sums(ragged, elements, turn / 3, turn, status);
    ASSERT_EQ(found.size(), ragged.segments.size());
    EXPECT_EQ(status.wrong_offset, -1);
    EXPECT_EQ(status.segments, static_cast<std::int64_t>(ragged.segments.size()));
    for (std::size_t s = 0; s < found.size(); ++s) {
      const auto& [begin, end] = ragged.segments[s];
      if (s == 13) {
        EXPECT_TRUE(std::isnan(found[s]));
      } else {
        EXPECT_EQ(found[s], 2.0 * static_cast<double>(end - begin)) << "segment " << s;
      }
    }
  }
}

TEST(Padded, NoSegmentsAndNoElements) {
  for (std::size_t turn = 0; turn < 6; ++turn) {
    for (const bool pairs : {false, true}) {
      Ragged none;
      none.pairs = pairs;
      none.elements = turn % 2 == 0 ? 0 : 40;
      LaunchStatus status;
      EXPECT_TRUE(sums(none, Column(DType::f16, none.elements), turn % 3, turn, status).empty());
      EXPECT_EQ(status.segments, 0);
      EXPECT_EQ(status.wrong_offset, -1);
      Ragged empty = none;
      empty.elements = 0;
      empty.segments.assign(19, {0, 0});
      EXPECT_EQ(sums(empty, Column(DType::f16, 0), turn % 3, turn, status),
                std::vector<double>(19, 0.0));
      EXPECT_EQ(status.segments, 19);
    }
  }
}

/// The bits are the same under every schedule.
TEST(Padded, BitsAreTheSameEveryTime) {
  const Ragged ragged = make_ragged(Lengths::giant, 3000, 3);
  const Column elements = make_column(DType::f16, ragged.elements, Fill::normal, 5);
  LaunchStatus status;
  for (std::size_t plan = 0; plan < std::size(kPlans); ++plan) {
    std::vector<double> first;
    for (std::size_t turn = 0; turn < 4; ++turn) {
      const std::vector<double> now = sums(ragged, elements, plan, turn, status);
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << kPlans[plan] << ", turn " << turn;
    }
  }
}

}  // namespace
}  // namespace chainfold::test
