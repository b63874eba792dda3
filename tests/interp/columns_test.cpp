// Columns of matrices of every shape: ragged, narrow and wide, in one part and in several, dense
// and padded, under every schedule, interpreted and held against the reference.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>

#include "chainfold/codegen/choose/columns.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/scalar_folds.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

std::string words(const TestProgram& tested, const codegen::Target& target, const InterpCase& c) {
  return fmt::format(
      "{} on {}: {} columns, {} rows of {}, aligned to {}, gaps {}, {} chunks, schedule {}: {}",
      tested.name, target.name, c.segment, c.elements / c.segment, name_of(c.fill),
      c.base_alignment, c.gaps.empty() ? "none" : std::to_string(c.gaps[0]), c.chunks,
      static_cast<int>(c.options.schedule), c.choice ? to_text(*c.choice) : "default");
}

class Columns : public testing::TestWithParam<const char*> {};

TEST_P(Columns, EveryShapeIsRight) {
  const TestProgram& tested = program(GetParam());
  std::mt19937_64 random(20261122);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  const bool slow = tested.name.rfind("sum_", 0) != 0;
  int runs = 0, wide = 0, cut = 0, strided = 0;
  for (int turn = 0; turn < 400 && runs < thinned(slow ? 40 : 80); ++turn) {
    InterpCase c{
        .segment = pick({1, 2, 3, 7, 8, 24, 31, 32, 33, 64, 100, 256, 257, 264, 520, 1000}),
        .columns = true};
    const std::int64_t rows = pick({0, 1, 2, 7, 16, 33, 64, 100, 250, 1001});
    c.elements = c.segment * rows;
    if (c.elements > (slow ? 20'000 : 40'000)) continue;
    const codegen::Target target =
        turn % 4 == 3 ? codegen::cpu_target(2) : codegen::gpu_target(pick({75, 90}), pick({1, 3}));
    const Computation computation = tested.over(columns(c.segment));
    const int size = size_of(computation.graph().inputs[0].type);
    c.base_alignment = pick({16, 16, 8, size});
    if (c.base_alignment < size) continue;
    if (turn % 3 == 1) c.gaps = {pick({0, 1, 8, 16, 24}), pick({0, 5, 8})};
    PlanChoice choice{.strategy = Strategy::columns,
                      .warps = target.is_cpu() ? 1 : pick({1, 2, 4, 8}),
                      .depth = pick({1, 2, 4, 8}),
                      .rows = pick({1, 1, 2, 4}),
                      .strip = target.is_cpu() ? pick({0, 64, 128, 256}) : 0,
                      .parts = pick({1, 2, 3, 7, 40}),
                      .bytes = pick({4, 16}),
                      .mma = false};
    if (turn % 5 != 0) c.choice = choice;
    const codegen::PlanRequest request{.segment = c.segment,
                                       .base_alignment = alignment_of(computation.graph(), c),
                                       .strided = !c.gaps.empty()};
    const auto plan =
        make_plan(computation.graph(), target, request,
                  c.choice ? choice : default_choice(computation.graph(), target, request));
    if (!plan) continue;
    c.fill = tested.fills[random() % tested.fills.size()];
    c.seed = random();
    c.chunks = pick({1, 1, 3});
    c.options.seed = random();
    c.options.resident_blocks = pick({1, 2, 4});
    c.options.schedule = static_cast<codegen::Schedule>(random() % 3);
    SCOPED_TRACE(words(tested, target, c));
    try {
      const Verdict verdict = check_interpreted(tested, target, c);
      ASSERT_EQ(verdict.problems, "");
      EXPECT_EQ(verdict.values, c.segment * static_cast<std::int64_t>(computation.outputs()));
    } catch (const std::exception& error) {
      FAIL() << error.what();
    }
    ++runs;
    wide += plan->load_width > 1;
    cut += plan->launches == 2 && rows > plan->parts.quantum;
    strided += plan->strided;
  }
  EXPECT_GE(runs, thinned(slow ? 40 : 60));
  EXPECT_GT(wide, 0);
  EXPECT_GT(cut, 0);
  EXPECT_GT(strided, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Columns,
                         testing::Values("sum_f16", "sum_f32", "sum_i8", "sum_f64", "basics_f16",
                                         "frames", "dot_f16", "variance_f32", "q6", "filter_f16",
                                         "argmax_f32", "arg_folds_i8", "flags_bool", "index_i16",
                                         "mixed_types", "literals_f32", "logsumexp_f32",
                                         "longest_run_f32", "brackets_i8", "continuant_u32",
                                         "first_and_last_f64", "last_even_i32",
                                         "ordered_beside_f16"),
                         [](const auto& info) { return std::string(info.param); });

/// Rows that begin anywhere, of several windows side by side, the last band reaching back.
TEST(ColumnPlans, OfNarrowLoadsSideBySideAreRight) {
  const codegen::Target target = codegen::gpu_target(90);
  constexpr std::int64_t kCount = 523;
  int chunks = 1;
  for (const char* name : {"sum_f16", "index_i16", "argmax_f32", "longest_run_f32"}) {
    const TestProgram& tested = program(name);
    const Computation computation = tested.over(columns(kCount));
    const PlanChoice narrow =
        narrow_columns_choice(computation.graph(), target, {.segment = kCount});
    const auto plan = make_plan(computation.graph(), target, {.segment = kCount}, narrow).value();
    EXPECT_EQ(plan.load_width, 1) << name;
    EXPECT_GE(plan.rows, 4) << name;
    chunks = 3 - chunks;
    const InterpCase c{.segment = kCount,
                       .columns = true,
                       .elements = kCount * 141,
                       .fill = tested.fills[0],
                       .chunks = chunks,
                       .choice = narrow};
    SCOPED_TRACE(words(tested, target, c));
    ASSERT_EQ(check_interpreted(tested, target, c).problems, "");
  }
}

/// The plans that a tuner would try.
TEST(ColumnPlans, OfTheSpaceAreRight) {
  std::size_t turn = 0;
  for (const char* name : {"sum_f16", "argmax_f32", "longest_run_f32"}) {
    const TestProgram& tested = program(name);
    for (const char* target_name : {"sm_90", "sm_75", "cpu"}) {
      const codegen::Target target = codegen::parse_target(target_name);
      for (const std::int64_t count : {3, 100, 264}) {
        const Computation computation = tested.over(columns(count));
        const auto space = plan_space(computation.graph(), target, {.segment = count});
        EXPECT_GE(space.size(), 6u);
        for (std::size_t i = turn % (3 * kThin); i < space.size(); i += 3 * kThin) {
          ++turn;
          InterpCase c{.segment = count,
                       .columns = true,
                       .elements = count * static_cast<std::int64_t>(turn * 97 % 301),
                       .fill = tested.fills[turn % tested.fills.size()],
                       .seed = turn};
          c.choice = space[i];
          c.options.schedule = turn % 2 ? codegen::Schedule::random : codegen::Schedule::reversed;
          SCOPED_TRACE(words(tested, target, c));
          EXPECT_EQ(codegen::parse_choice(to_text(space[i])), space[i]);
          ASSERT_EQ(check_interpreted(tested, target, c).problems, "");
        }
      }
    }
  }
}

/// Folds that need their order against plain loops, which share no code with the library.
TEST(ColumnOrder, IsThatOfTheRows) {
  for (const ScalarFold& fold : scalar_folds()) {
    const TestProgram& tested = program(fold.program);
    for (const char* target : {"sm_90", "cpu"}) {
      for (const std::int64_t count : {1, 5, 16, 40, 260}) {
        const std::int64_t rows = count == 260 ? 70 : 333;
        InterpCase c{.segment = count, .columns = true, .elements = count * rows};
        c.fill = tested.fills[0];
        c.options = {.schedule = codegen::Schedule::random, .seed = 5, .resident_blocks = 3};
        const Computation computation = tested.over(columns(count));
        const codegen::Graph& graph = computation.graph();
        const codegen::Compiled compiled =
            codegen::compile_graph(graph, codegen::parse_target(target), {.segment = count});
        const auto inputs = make_inputs(graph, c.elements, c.fill, 3);
        const auto outputs = interpret_graph(graph, compiled, inputs, {}, c);
        // Each column once more, as a segment of its own.
        std::vector<Column> turned;
        for (const Column& input : inputs) {
          Column& to = turned.emplace_back(input.type(), input.count());
          for (std::int64_t i = 0; i < input.count(); ++i)
            to.set(i % count * rows + i / count, input.get(i));
        }
        EXPECT_EQ(compare(fold, turned, outputs, rows, c.elements), "")
            << fold.program << " on " << target << ", " << count << " columns";
      }
    }
  }
}

/// What is in one column changes no other.
TEST(ColumnElements, SpoilTheirOwnColumnOnly) {
  struct Case {
    const char* program;
    std::int64_t columns;
  };
  // Batches of rows, and of moments such as are in phases.
  for (const auto& [name, count] : {Case{"sum_f16", 5},
                                    {"sum_f16", 24},
                                    {"sum_f16", 264},
                                    {"variance_f16", 24},
                                    {"variance_f32", 264},
                                    {"variance_f16", 261}}) {
    SCOPED_TRACE(fmt::format("{}, {} columns", name, count));
    const Computation computation = program(name).over(columns(count));
    const codegen::Graph& graph = computation.graph();
    const codegen::Compiled compiled =
        codegen::compile_graph(graph, codegen::gpu_target(90, 1), {.segment = count});
    if (count == 261) {
      ASSERT_GT(compiled.plan.columns.phases, 1);
    }
    const InterpCase c{.segment = count, .columns = true, .elements = count * 77};
    std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::uniform, 5);
    const std::vector<Column> clean = interpret_graph(graph, compiled, inputs, {}, c);
    for (std::int64_t at = 0; at < c.elements; at += c.elements / 13 + 1) {
      const Bits before = inputs[0].get(at);
      inputs[0].set_double(at, std::numeric_limits<double>::quiet_NaN());
      const std::vector<Column> spoiled = interpret_graph(graph, compiled, inputs, {}, c);
      inputs[0].set(at, before);
      for (std::int64_t s = 0; s < count; ++s) {
        const double value = codegen::double_of_bits(spoiled[0].type(), spoiled[0].get(s));
        if (s == at % count) {
          EXPECT_TRUE(std::isnan(value)) << at;
        } else {
          ASSERT_EQ(spoiled[0].get(s), clean[0].get(s)) << "element " << at << ", column " << s;
        }
      }
    }
  }
}

}  // namespace
}  // namespace chainfold::test
