// The published strategies, run by the interpreter under adversarial schedules and held against the
// reference: every one with several decisions, on sizes that fill no square, warp or block.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/published.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Strategy;

/// What a choice's program gives on a few kinds of data; `tests` picks the graph.
void check(const PublishedCase& row, const char* graph, const char* target_name,
           Determinism determinism) {
  const TestProgram& tested = program(graph);
  const codegen::Target target = [&] {
    codegen::Target some = codegen::parse_target(target_name);
    some.processors = 5;  // few, so that blocks have more than one unit each
    return some;
  }();
  const codegen::PlanChoice choice = codegen::parse_choice(row.plan);
  std::uint64_t turn = 0;
  for (const std::int64_t count : row.counts) {
    for (const Fill fill : {Fill::uniform, Fill::whole, Fill::nonfinite, Fill::normal}) {
      ++turn;
      InterpCase c{.segment = row.segment,
                   .elements = row.segment > 0 ? count * row.segment : count};
      c.fill = fill;
      c.seed = turn;
      c.accuracy = row.loose ? Accuracy::as_published : Accuracy::accurate;
      c.determinism = determinism;
      c.base_alignment = turn % 5 == 4 ? 2 : turn % 3 == 2 ? 4 : 16;
      c.chunks = turn % 4 == 3 ? 3 : 1;
      c.options.seed = turn;
      c.options.schedule = turn % 3 == 0   ? codegen::Schedule::in_order
                           : turn % 3 == 1 ? codegen::Schedule::random
                                           : codegen::Schedule::reversed;
      c.options.resident_blocks = turn % 4 == 0 ? 1 : 4;
      c.choice = choice;
      if (row.offsets) {
        c.elements = 0;
        c.ragged = make_ragged(kAllLengths[(turn + count) % std::size(kAllLengths)], count, turn,
                               turn % 3 == 1, turn % 5 == 2 ? DType::i32 : DType::i64);
      }
      SCOPED_TRACE(fmt::format("{} on {}, {} elements of {} aligned to {}: {}", graph, target_name,
                               row.offsets ? c.ragged->elements : c.elements, name_of(fill),
                               c.base_alignment, row.plan));
      const Verdict verdict = check_interpreted(tested, target, c);
      ASSERT_EQ(verdict.problems, "");
      if (fill != Fill::nonfinite) {
        EXPECT_EQ(verdict.unchecked, 0);
      }
    }
  }
}

class PublishedRuns : public testing::TestWithParam<std::size_t> {};

TEST_P(PublishedRuns, AgreesWithTheReference) {
  const PublishedCase& row = published_cases()[GetParam()];
  auto turn = static_cast<std::int64_t>(GetParam());
  const auto check_taken = [&](const char* name, const char* target, Determinism determinism) {
    if (is_taken(turn++)) check(row, name, target, determinism);
  };
  for (const char* target : {"sm_90", "sm_80", "sm_75"})
    check_taken("sum_f16", target, Determinism::run_to_run);
  check_taken("sum_bf16", "sm_90", Determinism::run_to_run);
  check_taken("sum_to_f16", "sm_80", Determinism::run_to_run);
  if (row.segment == 0 && !row.offsets)
    check_taken("sum_f16", "sm_90", Determinism::not_guaranteed);
}

INSTANTIATE_TEST_SUITE_P(Plans, PublishedRuns,
                         testing::Range(std::size_t{0}, published_cases().size()),
                         [](const auto& info) {
                           const codegen::PlanChoice choice =
                               codegen::parse_choice(published_cases()[info.param].plan);
                           return fmt::format("{}_{}", codegen::published(choice.strategy)->name,
                                              info.param);
                         });

/// The worst error of one plan on data that its weak side hurts, which must keep its bound; the
/// bound.
std::pair<double, double> error_and_bound(const char* plan_text, std::int64_t segment,
                                          Accuracy accuracy, const Column& column) {
  const Computation computation =
      program("sum_f16").over(segment > 0 ? segments(segment) : whole());
  const codegen::Graph& graph = computation.graph();
  const codegen::Target target = codegen::gpu_target(90);
  const auto plan = make_plan(graph, target, {.accuracy = accuracy, .segment = segment},
                              codegen::parse_choice(plan_text));
  if (!plan) throw std::invalid_argument(plan_text);
  const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
  std::vector<Column> inputs;
  inputs.push_back(make_column(DType::f16, column.count(), Fill::whole, 1));
  for (std::int64_t i = 0; i < column.count(); ++i) inputs[0].set(i, column.get(i));
  const auto outputs = interpret_graph(graph, compiled, inputs, {},
                                       {.segment = segment, .elements = column.count()});
  const Verdict verdict =
      judge(reference(graph, inputs, column.count(), {.segment = segment, .plan = *plan}), outputs);
  EXPECT_EQ(verdict.problems, "") << plan_text;
  EXPECT_EQ(verdict.unchecked, 0);
  return {verdict.worst_u, plan->folds[0].error_bound_u};
}

/// One of 1024 and fifteen of 0.5 a run: a column's sum lies half-way between two of f16.
Column between_halves(std::int64_t count, int run) {
  Column column(DType::f16, count);
  for (std::int64_t i = 0; i < count; ++i) column.set_double(i, i % run == 0 ? 1024.0 : 0.5);
  return column;
}

TEST(Published, ARoundedColumnLosesWhatAsPublishedAllowsAndNoMore) {
  const Column column = between_halves(256, 32);  // each lane's first element of its four is large
  const auto [loose, loose_bound] =
      error_and_bound("reduction256 product=1", 256, Accuracy::as_published, column);
  const auto [tight, tight_bound] =
      error_and_bound("reduction256 product=0", 256, Accuracy::accurate, column);
  EXPECT_GT(loose, 8000) << "2^-11 of a sum are 8192 u";
  EXPECT_LT(loose_bound, 8192 + 64);
  EXPECT_LE(tight, 1);
  EXPECT_LE(tight_bound, 16);
}

TEST(Published, AnUnbrokenChainDrifts) {
  const Column column = make_column(DType::f16, 4096, Fill::adversarial, 1);
  const auto [unbroken, bound] =
      error_and_bound("efficient256n depth=4 chain=0", 4096, Accuracy::as_published, column);
  const auto [broken, broken_bound] =
      error_and_bound("efficient256n depth=4 chain=1", 4096, Accuracy::accurate, column);
  EXPECT_GT(unbroken, 100);
  EXPECT_GT(bound, 64) << "not even Accuracy::fast has it";
  EXPECT_LE(broken_bound, 16);
  EXPECT_LT(broken, unbroken);
}

TEST(Published, TheRecurrenceRoundsOnceMoreALaunch) {
  const Column column = between_halves(7 * 256, 32);
  const auto [error, bound] =
      error_and_bound("recurrence warps=2 chain=1", 0, Accuracy::as_published, column);
  EXPECT_GT(error, 8000);
  EXPECT_GT(bound, 9 * 8192);
  EXPECT_LT(bound, 10 * 8192);
}

TEST(Published, TheRecurrenceOverflowsWhereAPartialSumLeavesTheRangeOfF16) {
  const TestProgram& tested = program("sum_f16");
  const Computation computation = tested.over(whole());
  const codegen::Target target = codegen::gpu_target(90);
  for (const auto& [count, finite] : {std::pair{60000, true}, std::pair{70000, false}}) {
    std::vector<Column> inputs;
    inputs.emplace_back(DType::f16, count);
    for (std::int64_t i = 0; i < count; ++i) inputs[0].set_double(i, 1);
    auto sum = [&, elements = count](const char* text) {
      const auto plan = make_plan(computation.graph(), target, {.accuracy = Accuracy::as_published},
                                  codegen::parse_choice(text));
      const codegen::Compiled compiled =
          codegen::compile_plan(computation.graph(), target, plan.value());
      const auto outputs =
          interpret_graph(computation.graph(), compiled, inputs, {}, {.elements = elements});
      return codegen::double_of_bits(DType::f32, outputs[0].get(0));
    };
    EXPECT_EQ(std::isfinite(sum("recurrence warps=2 chain=4")), finite);
    EXPECT_EQ(sum("single_pass warps=2 chain=4 blocks=1 product=1"), count);
  }
}

TEST(Published, EveryStrategyIsRun) {
  std::set<Strategy> run, known;
  for (const PublishedCase& row : published_cases())
    run.insert(codegen::parse_choice(row.plan).strategy);
  for (int s = 0; s < 256; ++s) {
    if (codegen::is_published(static_cast<Strategy>(s))) known.insert(static_cast<Strategy>(s));
  }
  EXPECT_EQ(run, known);
  EXPECT_EQ(known.size(), 12U);
}

}  // namespace
}  // namespace chainfold::test
