// look_back that looks at groups of tiles before its own one slot by slot: more than 32 * 32 tiles,
// so that what comes before a tile lies at every level, over the whole input and in segments, of
// one and of all, forward and backward, under every schedule.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

struct Case {
  const char* program;
  std::int64_t segment, elements;
  int near, heads = 0;
};

std::string words(const Case& tested) {
  return fmt::format("{} S={} n={} near={} heads={}", tested.program, tested.segment,
                     tested.elements, tested.near, tested.heads);
}

Computation computation_of(const Case& tested) {
  const TestProgram& scan = program(tested.program);
  return tested.segment > 0 ? scan.over(segments(tested.segment)) : scan.over(whole());
}

/// Loads of single elements (of heads two): the smallest tiles there are.
PlanChoice choice_of(const Case& tested) {
  const Computation computation = computation_of(tested);
  const int element = codegen::widest_of_scan(computation.graph());
  return {.strategy = Strategy::look_back,
          .warps = tested.near <= 4 ? 8 : 32,
          .depth = 1,
          .heads = tested.heads,
          .window = tested.near,
          .bytes = (1 + tested.heads) * element,
          .mma = false};
}

TEST(NearScan, IsRightAtEveryLevel) {
  std::size_t turn = 0;
  for (const Case& tested : {Case{"scan_sum_f32", 0, 1059 * 256 + 7, 1},
                             {"scan_sum_f32", 0, 2090 * 256 - 1, 4},
                             {"scan_horner_back_u8", 280'000, 280'000, 1},
                             {"scan_back_out_f32", 0, 1100 * 256 + 3, 3},
                             {"scan_horner_u8", 0, 1030 * 256 + 100, 4},
                             {"scan_sum_f16", 90'000, 270'000, 3},
                             {"scan_horner_u8", 0, 1060 * 1024 + 5, 28},
                             {"scan_sum_f32", 67'001, 67'001 * 8, 1, 1},
                             {"scan_back_out_f32", 200'003, 600'009, 3, 1},
                             {"scan_horner_back_u8", 571'001, 571'001, 2, 1}}) {
    if (!is_taken(++turn)) continue;
    SCOPED_TRACE(words(tested));
    InterpCase c{.segment = tested.segment,
                 .elements = tested.elements,
                 .fill = Fill::whole,
                 .choice = choice_of(tested)};
    c.options = {.schedule = codegen::Schedule::random, .seed = turn, .resident_blocks = 5};
    expect_right(program(tested.program), codegen::gpu_target(90), c);
  }
}

TEST(NearScan, HasTheSameBitsUnderEverySchedule) {
  for (const Case& tested : {Case{"scan_sum_f32", 0, 150 * 256 + 9, 2},
                             {"scan_variance_f32", 21'000, 42'000, 1},
                             {"scan_back_out_f32", 70'011, 140'022, 3, 1}}) {
    SCOPED_TRACE(words(tested));
    const Computation computation = computation_of(tested);
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::gpu_target(90);
    const auto plan = make_plan(graph, target, {.segment = tested.segment}, choice_of(tested));
    ASSERT_TRUE(plan);
    ASSERT_EQ(plan->scan.window, tested.near);
    expect_same_bits(graph, target, tested.segment, tested.elements, 6,
                     [&](std::size_t) { return choice_of(tested); });
  }
}

/// The same of tiles that fold the states of all before them: of none, of a warp's lanes, of more
/// than a block has at once.
TEST(DirectScan, IsRight) {
  std::size_t turn = 0;
  for (const char* name : {"scan_sum_f32", "scan_back_out_f32", "scan_horner_u8",
                           "scan_horner_back_u8", "scan_variance_f32", "scan_beside_fold_f32"}) {
    for (const std::int64_t elements : {1, 63, 64, 65, 2000, 4200, 36'100}) {
      SCOPED_TRACE(fmt::format("{} of {}", name, elements));
      // A fold beside a scan is of its own launch's elements.
      const bool carries = elements > 1000 && std::string(name) != "scan_beside_fold_f32";
      InterpCase c{.elements = elements,
                   .fill = Fill::whole,
                   .chunks = carries ? 1 + static_cast<int>(turn / 2 % 3) : 1,
                   .in_place = turn % 2 == 1};
      const Computation computation = program(name).over(whole());
      c.choice = {.strategy = Strategy::propagate,
                  .warps = 1 << turn % 3,
                  .depth = 2,
                  .direct = 1,
                  .bytes = codegen::widest_of_scan(computation.graph()),
                  .mma = false};
      c.options = options_of(turn++);
      expect_right(program(name), codegen::gpu_target(90), c);
    }
  }
}

/// Of folds that keep their order, where several warps have shares of the states: a warp's are
/// neighbours, as are a lane's.
TEST(DirectScan, KeepsOrderAmongShares) {
  std::size_t turn = 0;
  for (const char* name : {"scan_horner_u8", "scan_horner_back_u8", "scan_brackets_back_i8"}) {
    for (const int warps : {2, 3, 4}) {
      for (const std::int64_t segment : {0, 40'000}) {
        SCOPED_TRACE(fmt::format("{} by {} warps in {}", name, warps, segment));
        InterpCase c{.segment = segment, .fill = Fill::whole};
        c.elements = segment > 0 ? 2 * segment : std::int64_t{64} * warps * 32 * warps - 17;
        if (segment == 0) c.chunks = 1 + static_cast<int>(turn % 2);
        c.choice = {.strategy = Strategy::propagate,
                    .warps = warps,
                    .depth = 1,
                    .direct = 1,
                    .bytes = 1,
                    .mma = false};
        const Computation computation =
            program(name).over(segment > 0 ? segments(segment) : whole());
        if (warps == 3 && !make_plan(computation.graph(), codegen::gpu_target(90),
                                     {.segment = segment}, *c.choice))
          continue;
        c.options = options_of(turn++);
        expect_right(program(name), codegen::gpu_target(90), c);
      }
    }
  }
  EXPECT_GE(turn, 12);
}

TEST(DirectScan, NeedsNothingFromBehind) {
  PlanChoice choice{.strategy = Strategy::propagate, .warps = 2, .depth = 2, .direct = 1};
  choice.mma = false;
  auto legal = [&](const char* name, std::int64_t segment) {
    const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
    return make_plan(computation.graph(), codegen::gpu_target(90), {.segment = segment}, choice)
        .has_value();
  };
  EXPECT_TRUE(legal("scan_sum_f32", 0));
  EXPECT_TRUE(legal("scan_sum_f32", 5000));
  EXPECT_FALSE(legal("scan_share_f32", 5000)) << "elements ask for their segment's sum";
  EXPECT_FALSE(legal("scan_both_ways_i32", 5000));
  choice.direct = 2;
  EXPECT_FALSE(legal("scan_sum_f32", 0));
  choice.direct = 1;
  choice.strategy = Strategy::look_back;
  EXPECT_FALSE(legal("scan_sum_f32", 0));
}

TEST(NearScan, NeedsAWarpALook) {
  const Case tested{"scan_sum_f32", 0, 0, 4};
  const Computation computation = computation_of(tested);
  const auto legal = [&](const PlanChoice& choice) {
    return make_plan(computation.graph(), codegen::gpu_target(90), {}, choice).has_value();
  };
  PlanChoice choice = choice_of(tested);
  EXPECT_TRUE(legal(choice));
  choice.window = 5;
  EXPECT_FALSE(legal(choice)) << "nine looks of eight warps";
  choice.window = 4;
  choice.strategy = Strategy::propagate;
  EXPECT_FALSE(legal(choice)) << "nothing is looked at";
}

}  // namespace
}  // namespace chainfold::test
