// The staged strategy where its loops run for more than one round: few processors, short batches,
// all alignments, every way of sharing a segment, under every schedule.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <string>

#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

/// What is wrong with a choice on random data under a random schedule: "" if nothing is.
std::string problems_of(const TestProgram& tested, const codegen::Target& target, InterpCase c,
                        const PlanChoice& choice, std::mt19937_64& random) {
  c.fill = tested.fills[random() % tested.fills.size()];
  c.seed = random();
  c.options.seed = random();
  c.options.arch = target.arch;
  c.options.resident_blocks = 1 << (random() % 3);
  c.options.schedule = static_cast<codegen::Schedule>(random() % 3);
  c.choice = choice;
  const std::string problems = check_interpreted(tested, target, c).problems;
  if (problems.empty()) return problems;
  return fmt::format("{} on {} x {}, segment {}, {} elements of {}, aligned to {}: {}\n{}",
                     tested.name, target.name, target.processors, c.segment, c.elements,
                     name_of(c.fill), c.base_alignment, to_text(choice), problems);
}

class Staged : public testing::TestWithParam<const char*> {};

TEST_P(Staged, EveryShapeIsRight) {
  const TestProgram& tested = program(GetParam());
  std::mt19937_64 random(20261121);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  int runs = 0, wide = 0, narrow = 0;
  constexpr int kRuns = thinned(60);
  for (int turn = 0; turn < 400 && runs < kRuns; ++turn) {
    const std::int64_t segment =
        pick({1, 2, 3, 5, 7, 8, 12, 16, 24, 33, 37, 64, 77, 100, 128, 255});
    const Computation computation = tested.over(segments(segment));
    codegen::Target target = codegen::gpu_target(pick({80, 86, 90, 100}), pick({1, 2, 3}));
    PlanChoice choice{.strategy = Strategy::staged,
                      .warps = pick({1, 2, 4}),
                      .rows = pick({1, 2, 4}),
                      .lanes = pick({1, 2, 8, 32}),
                      .stages = pick({1, 2, 4}),
                      .occupancy = pick({1, 2}),
                      .bytes = pick({4, 16}),
                      .mma = pick({0, 1}) == 1};
    choice.store_batch = choice.stages * pick({1, 1, 2, 3}) + pick({0, 0, 1});
    choice.tail_trips = pick({0, 1, choice.store_batch});
    InterpCase c{.segment = segment};
    const std::int64_t tile = std::int64_t{32} / choice.lanes * choice.rows;
    const std::int64_t tiles = static_cast<std::int64_t>(random() % 40);
    c.elements = segment * (1 + tile * tiles + static_cast<std::int64_t>(random() % 32));
    if (c.elements > 60'000) continue;
    const int size = size_of(computation.graph().inputs[0].type);
    c.base_alignment = pick({16, 16, 8, size});
    if (c.base_alignment < size) continue;
    if (!make_plan(computation.graph(), target,
                   {.segment = segment, .base_alignment = c.base_alignment}, choice))
      continue;
    c.chunks = pick({1, 1, 3});
    ASSERT_EQ(problems_of(tested, target, c, choice, random), "");
    ++runs;
    (c.base_alignment == 16 ? wide : narrow) += 1;
  }
  EXPECT_GE(runs, kRuns * 2 / 3);
  EXPECT_GT(wide, 0);
  EXPECT_GT(narrow, 0);
}

/// Blocks that take several batches in turns, all sizes of which meet all rings, and others that
/// come late, a batch each; ends within a batch, a round and a tile.
TEST_P(Staged, BlocksTakeBurstsInTurns) {
  const TestProgram& tested = program(GetParam());
  std::mt19937_64 random(20261123);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  int runs = 0, late = 0;
  constexpr int kRuns = thinned(24);
  for (int turn = 0; turn < 8000 && runs < kRuns; ++turn) {
    const std::int64_t segment = pick({1, 2, 3, 5, 8, 16, 24, 37, 64, 100});
    const Computation computation = tested.over(segments(segment));
    codegen::Target target = codegen::gpu_target(pick({80, 90, 100}), pick({1, 2, 3}));
    PlanChoice choice{.strategy = Strategy::staged,
                      .warps = pick({1, 2, 4}),
                      .rows = pick({1, 2}),
                      .lanes = pick({1, 4, 8, 32}),
                      .stages = pick({1, 2, 4}),
                      .occupancy = pick({1, 2}),
                      .bytes = pick({4, 16}),
                      .mma = pick({0, 1}) == 1};
    choice.store_batch = choice.stages + pick({0, 1, 2, 3, 5});
    choice.tail_trips = std::min(choice.store_batch - 1, pick({0, 1, 1, 2, 3}));
    const int size = size_of(computation.graph().inputs[0].type);
    InterpCase c{.segment = segment, .base_alignment = pick({16, 16, 8, size})};
    if (c.base_alignment < size) continue;
    const auto plan = make_plan(computation.graph(), target,
                                {.segment = segment, .base_alignment = c.base_alignment}, choice);
    if (!plan) continue;
    const std::int64_t round = std::int64_t{plan->warps} * plan->segments_per_warp();
    const std::int64_t turn_segments = plan->blocks * plan->staged.store_batch * round;
    const auto more = static_cast<std::int64_t>(random() % 9);
    c.elements = segment * (pick({1, 2, 3, 5, 9}) * turn_segments + pick({-1, 0, 1, 7}) * more);
    if (c.elements <= 0 || c.elements > 60'000) continue;
    ASSERT_EQ(problems_of(tested, target, c, choice, random), "");
    ++runs;
    if (plan->staged.tail_trips > 0 &&
        c.elements > segment * round * plan->blocks * plan->staged.tail_trips * 8)
      ++late;
  }
  EXPECT_GE(runs, kRuns * 2 / 3);
  if (kThin > 1) return;  // chance decides what so few runs come upon
  EXPECT_GT(late, 0);
}

/// As many rounds as make the first late block, or a block's batch full, and those around them.
TEST(StagedShares, MeetAtEveryBound) {
  const TestProgram& tested = program("sum_f16");
  std::mt19937_64 random(20261124);
  constexpr std::int64_t kSegment = 8, kProcessors = 3, kTailFrom = 8;
  const codegen::Target target = codegen::gpu_target(90, kProcessors);
  const auto check = [&](int batch, int late, std::int64_t rounds) {
    const PlanChoice choice{.strategy = Strategy::staged,
                            .warps = 2,
                            .rows = 1,
                            .lanes = 1,
                            .stages = 2,
                            .store_batch = batch,
                            .tail_trips = late,
                            .occupancy = 1,
                            .bytes = 16,
                            .mma = true};
    const std::int64_t round = std::int64_t{2} * 32;  // segments
    for (const std::int64_t less : {std::int64_t{0}, std::int64_t{1}, round - 1}) {
      const InterpCase c{.segment = kSegment, .elements = (rounds * round - less) * kSegment};
      ASSERT_EQ(problems_of(tested, target, c, choice, random), "") << rounds << " - " << less;
    }
  };
  for (const int late : {1, 2, 3}) {
    const std::int64_t first = kProcessors * late * kTailFrom;
    for (const std::int64_t rounds : {first - 1, first, first + 1, first + 2, 16 * first / 15 + 1})
      check(4, late, rounds);
  }
  for (const int batch : {2, 5}) {
    const std::int64_t wave = kProcessors * batch;
    for (const std::int64_t rounds : {std::int64_t{1}, kProcessors - 1, kProcessors,
                                      kProcessors + 1, wave - 1, wave, wave + 1, 2 * wave + 1})
      check(batch, batch, rounds);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Staged,
                         testing::Values("sum_f16", "sum_f32", "sum_i8", "frames", "dot_f16",
                                         "variance_f32", "variance_i16", "q6", "argmax_f32",
                                         "longest_run_f32", "longest_run_bool",
                                         "ordered_beside_f16"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace chainfold::test
