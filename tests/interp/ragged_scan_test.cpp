// Segments of many tiles whose last one is not whole: its rows have masks, and those of the others
// none, by every strategy over tiles and in every order of blocks. Everything ends anywhere, within
// a load, too.
#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include <fmt/format.h>

#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

PlanChoice choice_of(Strategy strategy, int depth, int bytes) {
  PlanChoice choice{.strategy = strategy, .warps = 2, .depth = depth, .bytes = bytes};
  if (strategy == Strategy::look_ahead) choice.stages = 3, choice.occupancy = 1;
  choice.mma = false;
  return choice;
}

std::optional<codegen::Plan> plan_of(const char* name, std::int64_t segment,
                                     const PlanChoice& choice) {
  const Computation computation = program(name).over(segments(segment));
  return make_plan(computation.graph(), codegen::gpu_target(90), {.segment = segment}, choice);
}

TEST(RaggedScan, IsRight) {
  std::size_t turn = 0;
  for (const char* name :
       {"scan_sum_f32", "scan_horner_u8", "scan_index_i16", "scan_variance_f32", "scan_sum_f16",
        "scan_filtered_f16", "scan_beside_fold_f32", "scan_share_f32", "scan_back_out_f32",
        "scan_horner_back_u8", "scan_index_back_u8", "scan_widths"}) {
    const Computation computation = program(name).over(segments(1));
    const bool asks_for_folds = broadcasts(computation.graph());  // by propagate alone
    const int bytes = 2 * codegen::widest_of_scan(computation.graph());
    for (const std::int64_t more : {2, 74, 126}) {
      for (const int which : {0, 1, 2, 3, 4, 5}) {
        if (!is_taken(which + static_cast<std::int64_t>(turn++ / 6))) continue;
        const bool waits = which < 4;
        PlanChoice choice = choice_of(
            waits ? which < 3 ? Strategy::look_back : Strategy::look_ahead : Strategy::propagate, 2,
            bytes);
        if (which == 1) choice.staged = 1;
        if (which == 2) choice.staged = 2, choice.interleaved = 2;
        if (which == 5) choice.direct = 1;
        choice.warps = 1 + static_cast<int>(turn / 2 % 2);
        const std::int64_t tile = std::int64_t{2} * 32 * 2 * choice.warps;  // of loads of two
        InterpCase c{.segment = 32 * tile + more, .in_place = turn % 2 == 1, .choice = choice};
        c.elements = c.segment * static_cast<std::int64_t>(1 + turn % 3);
        c.options = options_of(turn);
        const auto plan = plan_of(name, c.segment, choice);
        if (asks_for_folds && which != 4) {
          EXPECT_FALSE(plan) << name << ": " << to_text(choice);
          continue;
        }
        ASSERT_TRUE(plan) << name << ": " << to_text(choice);
        EXPECT_TRUE(plan->scan.ragged) << name;
        expect_right(program(name), codegen::gpu_target(90), c);
      }
    }
  }
}

TEST(RaggedScan, OfEverythingIsRight) {
  std::mt19937 random(1);
  const auto one_of = [&](unsigned count) { return random() % count == 0; };
  std::size_t turn = 0;
  for (const char* name :
       {"scan_sum_f32", "scan_horner_u8", "scan_index_i16", "scan_variance_f32", "scan_sum_f16",
        "scan_filtered_f16", "scan_beside_fold_f32", "scan_share_f32", "scan_back_out_f32",
        "scan_horner_back_u8", "scan_index_back_u8", "scan_widths", "scan_longest_run_f32"}) {
    const Computation computation = program(name).over(whole());
    const bool asks_for_folds = broadcasts(computation.graph());  // by propagate alone
    // Others have outputs that count from 0 in each launch, or of the launch as a whole.
    const std::string_view text = name;
    const bool goes_on = text.starts_with("scan_sum") || text.starts_with("scan_horner") ||
                         text.starts_with("scan_longest");
    for (const int which : {0, 1, 2, 3, 4, 5, 6}) {
      if (asks_for_folds && which != 4) continue;
      for (std::size_t end = 0; end < 10; ++end, ++turn) {
        if (!is_taken(static_cast<std::int64_t>(end) + which)) continue;
        const int depth = which == 6 ? codegen::kSmallTileRows + 1 : one_of(2) ? 3 : 2;
        PlanChoice choice = choice_of(which < 3    ? Strategy::look_back
                                      : which == 3 ? Strategy::look_ahead
                                                   : Strategy::propagate,
                                      depth, one_of(3) ? 16 : 8);
        if (which == 1) choice.staged = 1;
        if (which == 2) choice.staged = depth;
        if (which >= 5) choice.direct = 1;
        choice.warps = 1 + static_cast<int>(random() % 2);
        const auto plan = make_plan(computation.graph(), codegen::gpu_target(90), {}, choice);
        ASSERT_TRUE(plan) << name << ": " << to_text(choice);
        if (plan->load_width == 1) continue;               // of 8 bytes
        EXPECT_EQ(plan->scan.ragged, which != 5) << name;  // of few rows, which have masks
        const std::int64_t width = plan->load_width, row = 32 * width, run = row * depth,
                           tile = run * choice.warps;
        ASSERT_EQ(plan->scan.tile, tile);
        const std::int64_t ends[] = {1,       width - 1, width,      width + 1,    row - 1,
                                     row + 1, run - 1,   run % tile, tile - width, tile - 1};
        InterpCase c{.elements = static_cast<std::int64_t>(random() % 3) * tile + ends[end],
                     .fill = program(name).fills[random() % program(name).fills.size()],
                     .seed = turn,
                     .chunks = goes_on && one_of(4) ? 2 : 1,
                     .in_place = one_of(2),
                     .choice = choice};
        c.options = options_of(turn);
        expect_right(program(name), codegen::gpu_target(90), c);
      }
    }
  }
}

TEST(RaggedScan, HasTheSameBitsUnderEverySchedule) {
  const Computation computation = program("scan_sum_f32").over(segments(9002));
  expect_same_bits(computation.graph(), codegen::gpu_target(90), 9002, 3 * 9002, 6,
                   [&](std::size_t turn) {
                     PlanChoice choice = choice_of(Strategy::look_back, 2, 8);
                     choice.staged = 1;
                     choice.interleaved = turn % 2 == 0 ? 0 : 2;
                     return choice;
                   });
}

/// On tensor cores, too.
TEST(RaggedScan, GoesByQuads) {
  PlanChoice choice = choice_of(Strategy::look_back, 1, 8);
  choice.mma = true;
  const std::int64_t tile = 2 * 32 * 4, segment = 32 * tile + 16;
  const auto plan = plan_of("running_sum_f16", segment, choice);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->scan.ragged);
  EXPECT_EQ(plan->folds[0].unit, codegen::Unit::mma_scan);
  for (const Fill fill : {Fill::uniform, Fill::nonfinite}) {
    expect_right(program("running_sum_f16"), codegen::gpu_target(90),
                 {.segment = segment, .elements = 2 * segment, .fill = fill, .choice = choice});
    for (const char* name : {"running_sum_f16"}) {
      for (const int staged : {0, 1, 2}) {
        PlanChoice of_all = choice;
        of_all.depth = 2;
        of_all.staged = staged;
        const auto all =
            make_plan(program(name).over(whole()).graph(), codegen::gpu_target(90), {}, of_all);
        ASSERT_TRUE(all);
        EXPECT_TRUE(all->scan.ragged);
        EXPECT_EQ(all->folds[0].unit, codegen::Unit::mma_scan);
        for (const std::int64_t more : {1, 3, 127, 130, 255, 511}) {
          expect_right(program(name), codegen::gpu_target(90),
                       {.elements = 3 * all->scan.tile + more, .fill = fill, .choice = of_all});
        }
      }
    }
  }
}

TEST(RaggedScan, IsOfManyTiles) {
  const PlanChoice choice = choice_of(Strategy::look_back, 2, 8);
  constexpr std::int64_t kTile = 2 * 32 * 2 * 2;
  auto ragged = [](const char* name, std::int64_t segment, const PlanChoice& of) {
    return plan_of(name, segment, of).value().scan.ragged;
  };
  EXPECT_TRUE(ragged("scan_sum_f32", 32 * kTile + 2, choice));
  EXPECT_TRUE(ragged("scan_back_out_f32", 32 * kTile + 2, choice));
  EXPECT_FALSE(ragged("scan_sum_f32", 64 * kTile + 1, choice)) << "loads are of one";
  const PlanChoice propagate = choice_of(Strategy::propagate, 2, 8);
  EXPECT_TRUE(ragged("scan_sum_f32", 32 * kTile + 2, propagate));
  EXPECT_FALSE(ragged("scan_both_ways_i32", 32 * kTile + 2, propagate)) << "in two passes";
  EXPECT_FALSE(ragged("scan_sum_f32", 33 * kTile, choice)) << "all are whole";
  EXPECT_FALSE(ragged("scan_sum_f32", 31 * kTile + 2, choice)) << "one of few has masks";
  PlanChoice heads = choice;
  heads.heads = 1;
  EXPECT_FALSE(ragged("scan_sum_f32", 32 * kTile + 2, heads)) << "segments end anywhere in it";
}

}  // namespace
}  // namespace chainfold::test
