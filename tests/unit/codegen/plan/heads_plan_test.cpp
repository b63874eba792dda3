// Plans of look_back over tiles of all segments: their text, where they are legal, where they are
// offered and where they are the default.
#include <algorithm>

#include <gtest/gtest.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

using codegen::Plan;
using codegen::PlanChoice;
using codegen::PlanRequest;
using codegen::Target;

PlanChoice of(const char* name, const Target& target, const PlanRequest& request) {
  const Computation computation = program(name).over(segments(request.segment));
  return codegen::default_choice(computation.graph(), target, request);
}

TEST(HeadsPlan, SaysSoInItsText) {
  const char* text = "look_back warps=8 depth=16 staged=12 heads=1 tile=0 blocks=4 bytes=16 simt";
  const PlanChoice choice = codegen::parse_choice(text);
  EXPECT_EQ(choice.heads, 1);
  EXPECT_EQ(to_text(choice), text);
  PlanChoice without = choice;
  without.heads = 0;
  EXPECT_EQ(to_text(without), "look_back warps=8 depth=16 staged=12 tile=0 blocks=4 bytes=16 simt");
  const Computation computation = program("scan_sum_f32").over(segments(33'001));
  const Target target = codegen::gpu_target(90);
  const auto plan = make_plan(computation.graph(), target, {.segment = 33'001}, choice);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->load_width, 4);
  EXPECT_EQ(plan->scan.tile, 8 * 16 * 32 * 4);
  const std::string told = print(*plan, computation.graph());
  EXPECT_NE(told.find("tile 16384 elements of all segments"), std::string::npos) << told;
  const auto narrow = make_plan(computation.graph(), target, {.segment = 33'001}, without);
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->load_width, 1);
}

TEST(HeadsPlan, IsLegalForSegmentsThatBeginAnywhere) {
  auto legal = [](const char* name, std::int64_t segment, const Target& target,
                  PlanChoice choice = {.strategy = codegen::Strategy::look_back,
                                       .warps = 4,
                                       .depth = 4,
                                       .heads = 1,
                                       .mma = false}) {
    const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
    return make_plan(computation.graph(), target, {.segment = segment}, choice).has_value();
  };
  const Target gpu = codegen::gpu_target(90);
  for (const std::int64_t segment : {1, 3, 4, 128, 4099, (1 << 30) - (1 << 20)})
    EXPECT_TRUE(legal("scan_sum_f32", segment, gpu)) << segment;
  EXPECT_FALSE(legal("scan_sum_f32", 0, gpu)) << "it has no heads";
  EXPECT_FALSE(legal("scan_sum_f32", 1 << 30, gpu)) << "positions are of 32 bits";
  EXPECT_FALSE(legal("scan_sum_f32", 4099, codegen::cpu_target(2)));
  EXPECT_TRUE(legal("scan_beside_sums_f16", 4099, gpu)) << "a fold is there where a segment ends";
  EXPECT_FALSE(legal("scan_back_beside_fold_i32", 4099, gpu));
  EXPECT_TRUE(legal("scan_index_i16", 4099, gpu)) << "positions are told of each element";
  EXPECT_FALSE(legal("scan_share_f32", 4099, gpu)) << "its fold is not known in time";
  EXPECT_FALSE(legal("scan_both_ways_i32", 4099, gpu));
  for (const codegen::Strategy strategy :
       {codegen::Strategy::propagate, codegen::Strategy::look_ahead,
        codegen::Strategy::scan_block}) {
    const PlanChoice other{.strategy = strategy,
                           .warps = 4,
                           .depth = 4,
                           .stages = 3,
                           .heads = 1,
                           .occupancy = 1,
                           .mma = false};
    EXPECT_FALSE(legal("scan_sum_f32", 4099, gpu, other));
  }
  PlanChoice two = codegen::parse_choice("look_back warps=4 depth=4 heads=2 bytes=16 simt");
  EXPECT_FALSE(legal("scan_sum_f32", 4099, gpu, two));
}

/// Where tiles of one segment, or blocks that own segments, have narrower loads or too few of them.
TEST(HeadsPlan, IsTheDefaultWhereOtherTilesAreSlower) {
  const Target hopper = codegen::gpu_target(90);
  for (const char* name :
       {"running_sum_to_f16", "scan_sum_f32", "scan_back_out_f32", "scan_sum_i8"}) {
    for (const std::int64_t segment : {4099, 33'001, 33'024, 100'001, 1'000'003, 1 << 20}) {
      const PlanChoice choice = of(name, hopper, {.segment = segment});
      EXPECT_EQ(choice.heads, 1) << name << " " << segment << ": " << to_text(choice);
      EXPECT_GT(choice.staged, 0) << name << " " << segment << ": " << to_text(choice);
      EXPECT_EQ(of(name, codegen::gpu_target(75), {.segment = segment}).heads, 0);
      EXPECT_EQ(of(name, codegen::cpu_target(2), {.segment = segment}).heads, 0);
    }
    const PlanChoice ampere = of(name, codegen::gpu_target(80), {.segment = 100'001});
    EXPECT_EQ(ampere.heads, 1);
    EXPECT_EQ(ampere.staged, 0) << "lanes make its copies";
    EXPECT_EQ(of(name, codegen::gpu_target(80), {.segment = 1 << 20}).heads, 0);
    for (const std::int64_t segment : {37, 777, 1000, 4096})
      EXPECT_EQ(of(name, hopper, {.segment = segment}).heads, 0) << name << " " << segment;
    EXPECT_EQ(of(name, hopper, {.segment = 33'001, .base_alignment = 1}).heads, 0)
        << "loads are narrow anyway";
  }
  EXPECT_EQ(of("scan_share_f32", hopper, {.segment = 33'001}).heads, 0);
  EXPECT_EQ(of("scan_sum_f32", hopper, {.segment = 1001}).heads, 0) << "small blocks hold several";
  EXPECT_EQ(of("scan_sum_f32", hopper, {.segment = 3001}).heads, 1) << "large ones would";
}

/// Of segments that a tile holds whole, none waits.
TEST(HeadsPlan, HasTilesOfWholeSegmentsWhereTheyFit) {
  const Target hopper = codegen::gpu_target(90);
  for (const std::int64_t segment : {32'768, 65'536}) {
    const Computation computation = program("running_sum_to_f16").over(segments(segment));
    const codegen::Plan plan = choose_plan(computation.graph(), hopper, {.segment = segment});
    EXPECT_TRUE(plan.scan.heads);
    EXPECT_EQ(plan.scan.tile % segment == 0, segment == 32'768) << print(plan, computation.graph());
  }
}

/// Both are offered where the size has them differ, so that measuring may tell.
TEST(HeadsPlan, IsOfferedBesideTilesOfOneSegment) {
  auto offered = [](std::int64_t segment, int arch) {
    const Computation computation = program("scan_sum_f32").over(segments(segment));
    const auto space =
        plan_space(computation.graph(), codegen::gpu_target(arch), {.segment = segment});
    const auto with = std::count_if(space.begin(), space.end(),
                                    [](const PlanChoice& choice) { return choice.heads > 0; });
    const bool without = std::any_of(space.begin(), space.end(), [](const PlanChoice& choice) {
      return choice.strategy == codegen::Strategy::look_back && choice.heads == 0;
    });
    EXPECT_TRUE(without) << segment;
    return with;
  };
  EXPECT_GE(offered(33'001, 90), 5);
  EXPECT_GE(offered(4099, 90), 5);
  EXPECT_GE(offered(33'001, 80), 2);
  EXPECT_GE(offered(33'024, 90), 5);
  EXPECT_EQ(offered(1024, 90), 0);
}

}  // namespace
}  // namespace chainfold::test
