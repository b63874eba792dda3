// scan_tile and scan_block of programs whose elements ask for their segment's fold, of segments
// that begin and end anywhere in lanes and rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

/// Runs a choice over segments of a size, if it is legal; its plan.
std::optional<codegen::Plan> run_if_legal(const TestProgram& tested, const PlanChoice& choice,
                                          std::int64_t segment, std::int64_t count,
                                          std::uint64_t seed) {
  InterpCase c{.choice = choice};
  c.segment = segment;
  c.elements = segment * count;
  c.seed = seed;
  c.options = options_of(seed % 6);
  const codegen::Target target = codegen::gpu_target(seed % 2 == 0 ? 90 : 75);
  const Computation computation = tested.over(segments(segment));
  const auto plan = make_plan(computation.graph(), target, {.segment = segment}, choice);
  if (plan) expect_right(tested, target, c);
  return plan;
}

TEST(SpreadScan, ElementsKnowTheFoldOfSegmentsOfEverySize) {
  int programs = 0;
  for (const TestProgram& tested : scan_programs()) {
    if (!broadcasts(tested.over(segments(1)).graph())) continue;
    ++programs;
    std::uint64_t seed = 0;
    for (std::int64_t segment = 1; segment <= 600; segment += 1 + segment / 16) {
      if (!is_taken(static_cast<std::int64_t>(++seed))) continue;
      const PlanChoice choice{.strategy = Strategy::scan_tile,
                              .warps = 2,
                              .depth = 8,
                              .bytes = seed % 3 == 0 ? 8 : 16,
                              .mma = false};
      const auto count = static_cast<std::int64_t>(1 + 2500 / segment + seed % 7);
      const bool is_legal = run_if_legal(tested, choice, segment, count, seed).has_value();
      EXPECT_TRUE(is_legal || segment > 8 * codegen::kWarpWidth) << tested.name << segment;
    }
  }
  EXPECT_GE(programs, 5);
}

/// Segments of which a block holds several, so that they begin anywhere in its warps' runs: some in
/// one run, some over several of them.
TEST(SpreadScan, WarpsOfABlockTellEachOtherTheirSegmentsFolds) {
  int programs = 0, blocks = 0;
  const std::uint64_t start = std::random_device{}() % 12;
  for (const TestProgram& tested : scan_programs()) {
    const Computation asked = tested.over(segments(1));
    if (!broadcasts(asked.graph()) && !scans_both_ways(asked.graph())) continue;
    ++programs;
    // Some more than a block has, of the widest elements as of others.
    const std::int64_t elements = 20'000 / std::max(4, codegen::widest_input(asked.graph()));
    // Merges of recurrences take the interpreter a hundred times as long as others.
    const auto& folds = asked.graph().folds;
    const bool slow = std::any_of(folds.begin(), folds.end(), [](const codegen::Fold& fold) {
      return fold.merge.steps.size() > 50;
    });
    std::uint64_t seed = 0;
    for (std::int64_t segment = 1; segment <= 3000; segment += 1 + segment / 4) {
      // Every fourth size, which one differs from program to program and from run to run.
      if (!is_taken(static_cast<std::int64_t>(++seed))) continue;
      if ((seed / kThin + start + static_cast<std::uint64_t>(programs)) % (slow ? 6 : 4) != 0)
        continue;
      const PlanChoice choice{.strategy = Strategy::scan_block,
                              .warps = seed % 5 == 0 ? 3 : 8,
                              .depth = seed % 3 == 0 ? 5 : 4,
                              .bytes = seed % 4 == 0 ? 8 : 16,
                              .mma = false};
      const auto count = static_cast<std::int64_t>(1 + elements / segment + seed % 3);
      const auto plan = run_if_legal(tested, choice, segment, count, seed);
      if (plan && plan->scan.tile_segments > 1) ++blocks;
    }
  }
  EXPECT_GE(programs, 3);
  EXPECT_GE(blocks, programs / static_cast<int>(kThin));
}

}  // namespace
}  // namespace chainfold::test
