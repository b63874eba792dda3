// The published strategies, run by the interpreter under adversarial schedules and held against the
// reference: every one with several decisions, on sizes that fill no square, warp or block.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "chainfold/codegen/plan_published.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

using codegen::Strategy;

struct Row {
  const char* plan;
  std::int64_t segment;
  std::vector<std::int64_t> counts;  ///< segments, or elements of the whole
  bool loose = false;                ///< needs Accuracy::as_published
};

/// Counts at and around what warps and blocks take at once.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"reduction16 warps=2 rows=1", 16, {0, 1, 15, 16, 17, 31, 33, 50}},
      {"reduction16 warps=1 rows=2 bytes=4", 16, {1, 16, 31, 32, 33, 63, 65}},
      {"reduction16 warps=4 rows=4 bytes=2", 16, {7, 64, 100, 257}},
      {"strided16n warps=2 depth=2 chain=1", 48, {1, 15, 16, 31, 33}},
      {"strided16n warps=1 depth=4 chain=2 bytes=4", 112, {5, 16, 17}, true},
      {"strided16n warps=2 depth=4 chain=0 bytes=2", 208, {3, 33}, true},
      {"strided16n warps=2 depth=16 chain=0", 64, {1, 16, 40}, true},
      {"coalesced16n warps=2 depth=2 chain=1", 272, {1, 15, 16, 33}},
      {"coalesced16n warps=1 depth=4 chain=1 bytes=4", 1296, {3, 17}},
      {"coalesced16n warps=2 depth=2 chain=0 bytes=2", 1040, {1, 18}, true},
      {"coalesced16n warps=2 depth=4 chain=1", 512, {16, 19}},
      {"reduction256 warps=2 rows=1", 256, {1, 2, 3}},
      {"reduction256 warps=2 rows=4 bytes=8", 256, {1, 3, 4, 7, 8, 9, 21}},
      {"reduction256 warps=1 rows=2 bytes=2 product=1", 256, {1, 5}, true},
      {"inefficient256n warps=2 depth=1", 256, {1, 3}},
      {"inefficient256n warps=2 depth=2 bytes=4", 1280, {1, 3}},
      {"inefficient256n warps=1 depth=4 product=1", 2304, {1, 3}, true},
      {"efficient256n warps=2 depth=1 chain=0", 256, {1, 3}},
      {"efficient256n warps=2 depth=4 chain=1", 2816, {1, 3}},
      {"efficient256n warps=2 depth=4 chain=4", 2816, {1, 3}, true},
      {"efficient256n warps=1 depth=2 chain=0 bytes=8", 1280, {2}, true},
      {"efficient256n warps=4 depth=4 chain=0 product=1", 2560, {1, 5}, true},
      {"efficient256n warps=2 depth=4 chain=2 product=1 bytes=2", 2816, {3}, true},
      {"block256n warps=4 depth=1 chain=1", 256, {1, 5}},
      {"block256n warps=4 depth=2 chain=1", 2048, {2}},
      {"block256n warps=4 depth=2 chain=1 bytes=4", 2816, {1, 3}},
      {"block256n warps=2 depth=4 chain=0", 2816, {3}, true},
      {"block256n warps=8 depth=1 chain=0 product=1", 2816, {2}, true},
      {"grid256n warps=2 depth=1 chain=1 blocks=1", 0, {0, 1, 255, 256, 511, 513, 9001, 40000}},
      {"grid256n warps=4 depth=4 chain=1 blocks=1 bytes=4", 0, {1023, 4096, 70001}},
      {"grid256n warps=1 depth=4 chain=4 blocks=1 bytes=2", 0, {5000}, true},
      {"grid256n warps=2 depth=2 chain=2 blocks=1 product=1", 0, {0, 700, 30011}, true},
      {"recurrence warps=1 chain=1", 0, {0, 1, 255, 256, 257, 66000}, true},
      {"recurrence warps=2 chain=5 bytes=4", 0, {1279, 1281, 9001}, true},
      {"recurrence warps=32 chain=8 bytes=2", 0, {3, 20000}, true},
      {"single_pass warps=1 chain=1 blocks=1", 0, {0, 1, 256, 257, 9001}},
      {"single_pass warps=4 chain=1 blocks=2 bytes=4", 0, {1023, 1025, 70001}},
      {"single_pass warps=4 chain=5 blocks=1 bytes=2", 0, {1, 5119, 30000}, true},
      {"single_pass warps=2 chain=4 blocks=1 product=1", 0, {0, 2047, 30000}, true},
      {"split warps=2 blocks=1 fraction=50", 0, {0, 1, 255, 256, 511, 513, 9001, 40000}},
      {"split warps=8 depth=2 blocks=1 fraction=25 bytes=4", 0, {4095, 70001}},
      {"split warps=4 depth=2 blocks=1 fraction=99 bytes=2", 0, {1, 30000}},
      {"split warps=4 blocks=1 fraction=1 product=1", 0, {600, 30000}, true},
  };
  return all;
}

/// What a choice's program gives on a few kinds of data; `tests` picks the graph.
void check(const Row& row, const char* graph, const char* target_name, Determinism determinism) {
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
      SCOPED_TRACE(fmt::format("{} on {}, {} elements of {} aligned to {}: {}", graph, target_name,
                               c.elements, name_of(fill), c.base_alignment, row.plan));
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
  const Row& row = rows()[GetParam()];
  for (const char* target : {"sm_90", "sm_80", "sm_75"})
    check(row, "sum_f16", target, Determinism::run_to_run);
  check(row, "sum_bf16", "sm_90", Determinism::run_to_run);
  check(row, "sum_to_f16", "sm_80", Determinism::run_to_run);
  if (row.segment == 0) check(row, "sum_f16", "sm_90", Determinism::not_guaranteed);
}

INSTANTIATE_TEST_SUITE_P(Plans, PublishedRuns, testing::Range(std::size_t{0}, rows().size()),
                         [](const auto& info) {
                           const codegen::PlanChoice choice =
                               codegen::parse_choice(rows()[info.param].plan);
                           return fmt::format("{}_{}", codegen::published(choice.strategy)->name,
                                              info.param);
                         });

TEST(Published, EveryStrategyIsRun) {
  std::set<Strategy> run, known;
  for (const Row& row : rows()) run.insert(codegen::parse_choice(row.plan).strategy);
  for (int s = 0; s < 256; ++s) {
    if (codegen::is_published(static_cast<Strategy>(s))) known.insert(static_cast<Strategy>(s));
  }
  EXPECT_EQ(run, known);
  EXPECT_EQ(known.size(), 11U);
}

}  // namespace
}  // namespace chainfold::test
