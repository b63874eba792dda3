// Why pinned plans are not legal: every strategy says what it serves, which make_plan() bears out,
// and decisions that are out of range are named with their range.
#include <gtest/gtest.h>

#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/diagnose.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::PlanRequest;
using codegen::Strategy;

constexpr std::int64_t kColumns = -1;  ///< of a case's segment: 40 columns instead

/// What a plan is pinned for.
struct Pinned {
  const char *plan, *program, *target;
  std::int64_t segment;
  Accuracy accuracy = Accuracy::accurate;

  [[nodiscard]] Computation computation() const {
    return test::program(program).over(segment == kColumns ? columns(40)
                                       : segment == 0      ? whole()
                                                           : segments(segment));
  }
  [[nodiscard]] PlanRequest request() const {
    return {.accuracy = accuracy,
            .nonfinite = NonFinite::assume_finite,
            .segment = segment == kColumns ? 40 : segment};
  }
  [[nodiscard]] bool legal() const {
    const Computation c = computation();
    return make_plan(c.graph(), codegen::parse_target(target), request(),
                     codegen::parse_choice(plan))
        .has_value();
  }
  [[nodiscard]] std::string fault() const {
    const Computation c = computation();
    return diagnose(c.graph(), codegen::parse_target(target), request(),
                    codegen::parse_choice(plan));
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} for {} of {} on {}", plan, program, segment, target);
  }
};

TEST(PlanReasons, EveryStrategySaysWhatItServes) {
  const std::vector<std::string_view> names = codegen::strategy_names();
  ASSERT_EQ(names.size(), static_cast<std::size_t>(Strategy::scan_grid256n) + 1);
  for (const std::string_view name : names) {
    const std::string scope = describe(codegen::parse_choice(name).strategy);
    EXPECT_TRUE(scope.starts_with(fmt::format("{} serves ", name))) << scope;
    auto says = [&](const char* word) { return scope.find(word) != std::string::npos; };
    EXPECT_TRUE(says("segments") || says("whole input") || says("columns")) << scope;
    EXPECT_TRUE(says("fold") || says("sum") || says("scan")) << scope;
    EXPECT_TRUE(says("any types") || says("f16")) << scope;
    EXPECT_TRUE(says("every target") || says("GPUs") || says("sm_")) << scope;
    EXPECT_FALSE(scope.ends_with('.')) << scope;
  }
}

TEST(PlanReasons, ScopesAreWhatIsLegal) {
  struct Row {
    Pinned pinned;
    bool legal;
  };
  const Row kRows[] = {
      {{"rows warps=1 simt", "sum_f16", "cpu", 37}, true},
      {{"rows warps=1 simt", "sum_f16", "sm_75", 37}, true},
      {{"rows warps=1 simt", "sum_f16", "sm_90", 0}, false},
      {{"rows warps=1 simt", "sum_f16", "sm_90", kColumns}, false},
      {{"rows warps=1 simt", "running_sum_f16", "sm_90", 37}, false},
      {{"rows warps=1 depth=64 lanes=8 simt", "sum_f32", "cpu", 100}, true},
      {{"rows warps=1 depth=64 lanes=8 simt", "sum_f32", "sm_90", 100}, false},
      {{"elements warps=4 simt", "sum_f16", "sm_75", 1}, true},
      {{"elements warps=4 simt", "sum_f16", "sm_75", 2}, false},
      {{"elements warps=1 simt", "sum_f16", "cpu", 1}, false},
      {{"parts warps=8 parts=9 simt", "sum_f64", "sm_75", 0}, true},
      {{"parts warps=1 parts=9 simt", "sum_f64", "cpu", 3}, true},
      {{"parts warps=8 parts=8 cluster=8 simt", "sum_f16", "sm_90", 0}, true},
      {{"parts warps=8 parts=8 cluster=8 simt", "sum_f16", "sm_90", 4096}, true},
      {{"parts warps=8 parts=8 cluster=8 simt", "sum_f16", "sm_80", 0}, false},
      {{"parts warps=8 parts=8 cluster=4 simt", "sum_f16", "sm_90", 0}, false},
      {{"staged warps=1 lanes=32 stages=2 burst=2 blocks=1", "sum_f16", "sm_80", 8192}, true},
      {{"staged warps=1 lanes=32 stages=2 burst=2 blocks=1", "sum_f16", "sm_80", 8193}, false},
      {{"staged warps=1 lanes=32 stages=2 burst=2 blocks=1", "sum_f16", "sm_80", 0}, false},
      {{"staged warps=1 lanes=32 stages=2 burst=2 blocks=1", "sum_f16", "sm_75", 4096}, false},
      {{"staged warps=1 lanes=1 stages=2 burst=2 blocks=1", "sum_f16", "sm_80", 4}, true},
      {{"staged warps=1 lanes=1 stages=2 burst=2 blocks=1", "sum_f16", "sm_80", 3}, false},
      {{"columns warps=1 depth=4 parts=1 simt", "sum_f16", "cpu", kColumns}, true},
      {{"columns warps=8 depth=4 parts=1 simt", "sum_f16", "sm_75", kColumns}, true},
      {{"columns warps=8 depth=4 parts=1 simt", "sum_f16", "sm_75", 40}, false},
      {{"columns warps=1 depth=4 phases=2 parts=1 simt", "sum_f16", "cpu", kColumns}, false},
      {{"columns warps=1 depth=4 strip=64 parts=1 simt", "sum_f16", "sm_90", kColumns}, false},
      {{"scan_tile warps=1 depth=32 simt", "running_sum_f16", "sm_75", 37}, true},
      {{"scan_tile warps=1 depth=32 simt", "running_sum_f16", "sm_75", 65536}, false},
      {{"scan_tile warps=1 depth=32 simt", "running_sum_f16", "sm_75", 0}, false},
      {{"scan_tile warps=1 depth=32 simt", "running_sum_f16", "cpu", 37}, true},
      {{"scan_run warps=1 depth=4 simt", "running_sum_f16", "cpu", 0}, true},
      {{"scan_run warps=1 depth=4 simt", "running_sum_f16", "sm_90", 0}, false},
      {{"scan_run warps=1 depth=4 simt", "running_sum_f16", "sm_90", 100000}, true},
      {{"scan_block warps=3 depth=4 simt", "running_sum_f16", "sm_90", 1024}, true},
      {{"scan_block warps=3 depth=4 simt", "running_sum_f16", "sm_90", 65536}, false},
      {{"scan_block warps=1 depth=4 simt", "running_sum_f16", "cpu", 64}, false},
      {{"look_back warps=4 depth=4 tile=0 simt", "running_sum_f16", "sm_75", 0}, true},
      {{"look_back warps=4 depth=4 staged=2 tile=0 simt", "running_sum_f16", "sm_75", 0}, false},
      {{"look_back warps=4 depth=4 staged=2 tile=0 simt", "running_sum_f16", "sm_80", 0}, true},
      {{"look_back warps=1 depth=4 tile=4 simt", "running_sum_f16", "cpu", 37}, true},
      {{"look_back warps=1 depth=4 tile=4 simt", "running_sum_f16", "sm_75", 37}, false},
      {{"look_ahead warps=4 stages=2 blocks=1 simt", "running_sum_f16", "sm_80", 0}, true},
      {{"look_ahead warps=4 stages=2 blocks=1 simt", "running_sum_f16", "sm_75", 0}, false},
      {{"propagate warps=4 depth=4 tile=0 simt", "running_sum_f16", "sm_75", 0}, true},
      {{"propagate warps=4 depth=4 direct=1 tile=0 simt", "running_sum_f16", "sm_75", 0}, true},
      {{"propagate warps=1 depth=4 tile=1 simt", "running_sum_f16", "cpu", 0}, true},
      {{"propagate warps=1 depth=4 direct=1 tile=1 simt", "running_sum_f16", "cpu", 0}, false},
  };
  for (const Row& row : kRows) EXPECT_EQ(row.pinned.legal(), row.legal) << row.pinned.text();
}

TEST(PlanReasons, WhatIsOutOfRangeIsNamed) {
  constexpr auto kPublished = Accuracy::as_published;
  struct Row {
    Pinned pinned;
    const char* fault;
  };
  const Row kRows[] = {
      {{"rows warps=64 depth=1 rows=1 bytes=16 simt", "sum_f16", "sm_75", 37},
       "warps=64 is out of range (1, 2, 4, 8, 16 or 32)"},
      {{"rows warps=3 depth=1 rows=1 bytes=16 simt", "sum_f16", "sm_75", 37},
       "warps=3 is out of range (1, 2, 4, 8, 16 or 32)"},
      {{"rows warps=8 depth=128", "sum_f16", "sm_75", 37},
       "depth=128 is out of range (1, 2, 4, 8, 16, 32 or 64)"},
      {{"rows warps=8 rows=64", "sum_f16", "sm_75", 37},
       "rows=64 is out of range (1, 2, 4, 8, 16 or 32)"},
      {{"rows warps=1 depth=8 rows=1 bytes=0 mma", "sum_f16", "cpu", 37},
       "mma does not serve here, simt does"},
      {{"rows warps=8 depth=128 rows=1 mma", "sum_f16", "cpu", 37},
       "warps=8 is out of range (1), depth=128 is out of range (1, 2, 4, 8, 16, 32 or 64), mma "
       "does not serve here, simt does"},
      {{"parts warps=8 parts=5000", "sum_f16", "sm_90", 0},
       "parts=5000 is out of range (1 to 4096)"},
      {{"parts warps=8 parts=16 cluster=16", "sum_f16", "sm_80", 0},
       "cluster=16 is out of range (0)"},
      {{"staged warps=8 lanes=8 rows=4 stages=3 burst=8 blocks=1 simt", "sum_f16", "sm_90", 37},
       "stages=3 is out of range (1, 2, 4 or 8)"},
      {{"columns warps=8 depth=4 runs=1 parts=0 simt", "sum_f16", "sm_90", kColumns},
       "parts=0 is out of range (1 to 4096)"},
      {{"look_ahead warps=4 stages=1 blocks=1 simt", "running_sum_f16", "sm_90", 0},
       "stages=1 is out of range (2 to 8)"},
      {{"look_back warps=1 depth=4 tile=0 simt", "running_sum_f16", "cpu", 0},
       "tile=0 is out of range (1 and more)"},
      {{"split warps=8 depth=4 blocks=4 fraction=150 product=0", "sum_f16", "sm_90", 0},
       "fraction=150 is out of range (1 to 99)"},
      {{"recurrence warps=2 chain=9", "sum_f16", "sm_90", 0, kPublished},
       "chain=9 is out of range (1 to 8)"},
      {{"recurrence warps=2 chain=9", "sum_f16", "sm_90", 0}, "chain=9 is out of range (1 to 8)"},
      {{"reduction16 warps=8 rows=2 simt", "sum_f16", "sm_90", 16},
       "simt does not serve here, mma does"},
      {{"scan256 warps=8 rows=1 product=2", "running_sum_f16", "sm_90", 256, kPublished},
       "product=2 is out of range (0 or 1)"},
      // Where no plan of the strategy is legal, its scope says why.
      {{"staged warps=1 lanes=1 rows=1 stages=2 burst=2 blocks=1", "sum_f16", "sm_75", 37}, ""},
      {{"rows warps=64", "sum_f16", "sm_90", 0}, ""},
      {{"recurrence warps=2 chain=4", "sum_f16", "sm_90", 0}, ""},
  };
  for (const Row& row : kRows) {
    EXPECT_FALSE(row.pinned.legal()) << row.pinned.text();
    EXPECT_EQ(row.pinned.fault(), row.fault) << row.pinned.text();
  }
}

/// The choice with the first value of the range of each decision that `fault` names.
PlanChoice mended(PlanChoice choice, const std::string& fault) {
  for (const codegen::PlanField& field : codegen::row_of(choice.strategy).fields) {
    const std::string words =
        fmt::format("{}={} is out of range (", field.name, choice.*field.value);
    const std::size_t at = fault.find(words);
    if (at != std::string::npos) choice.*field.value = std::stoi(fault.substr(at + words.size()));
  }
  return choice;
}

TEST(PlanReasons, WhatIsNamedMendsADecisionThatIsTakenOutOfRange) {
  constexpr int kFar = 1'000'003;
  int refused = 0;
  for (const Pinned& task : {Pinned{"rows", "sum_f16", "sm_90", 64},
                             {"rows", "sum_f16", "sm_90", 0},
                             {"rows", "sum_f16", "sm_75", 37},
                             {"rows", "dot_f16", "cpu", 64},
                             {"rows", "sum_f16", "sm_80", kColumns},
                             {"rows", "running_sum_f16", "sm_90", 0},
                             {"rows", "running_sum_f16", "cpu", 1000},
                             {"rows", "running_sum_f16", "sm_90", 256}}) {
    const Computation computation = task.computation();
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::parse_target(task.target);
    for (const PlanChoice& legal : plan_space(graph, target, task.request())) {
      for (const codegen::PlanField& field : codegen::row_of(legal.strategy).fields) {
        PlanChoice far = legal;
        far.*field.value = kFar;
        if (make_plan(graph, target, task.request(), far)) continue;
        ++refused;
        const std::string fault = diagnose(graph, target, task.request(), far);
        EXPECT_TRUE(make_plan(graph, target, task.request(), mended(far, fault)))
            << to_text(far) << ": " << fault;
      }
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace chainfold::test
