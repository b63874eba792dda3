// look_back whose tiles come through shared memory: under every schedule, at every alignment and in
// place, from launch to launch, and to the bit what the same tiles give out of registers.
#include <gtest/gtest.h>

#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/choose/scan.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/expect_scan.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

PlanChoice staged(int warps, int depth, int rows, int bytes) {
  return {.strategy = Strategy::look_back,
          .warps = warps,
          .depth = depth,
          .staged = rows,
          .bytes = bytes,
          .mma = false};
}

/// Every program of scans that has one direction and no folds of elements, with all rows staged,
/// some, and rounds of one and of several rows.
TEST(StagedScan, ServesEveryProgram) {
  struct Rows {
    int depth, staged;
  };
  constexpr Rows kRows[] = {{2, 1}, {3, 3}, {6, 5}, {9, 8}, {4, 2}};
  std::size_t turn = 0, served = 0;
  for (const TestProgram& tested : scan_programs()) {
    const codegen::Graph graph = tested.over(whole()).graph();
    const int size = codegen::widest_of_scan(graph);
    for (const std::int64_t segment : {0, 96 * 16 / size}) {
      const codegen::Target target = codegen::gpu_target(turn % 5 == 4 ? 80 : 90);
      const Rows rows = kRows[turn % 5];
      ++turn;
      InterpCase c{.segment = segment,
                   .elements = segment > 0 ? segment * 5 : 1900 + static_cast<std::int64_t>(turn),
                   .fill = tested.fills[turn % tested.fills.size()],
                   .seed = turn,
                   .base_alignment = turn % 4 == 3 ? size : 16,
                   .in_place = turn % 3 != 0,
                   .choice = staged(1 + static_cast<int>(turn % 2), rows.depth, rows.staged,
                                    turn % 7 == 0 ? 16 : 4),
                   .options = options_of(turn)};
      if (!make_plan(tested.over(segment > 0 ? segments(segment) : whole()).graph(), target,
                     {.segment = segment, .base_alignment = c.base_alignment}, *c.choice))
        continue;
      ++served;
      expect_right(tested, target, c);
    }
  }
  EXPECT_GE(served, scan_programs().size());
}

TEST(StagedScan, TilesMayEndAnywhere) {
  constexpr std::int64_t kTile = 2 * 3 * 32 * 4;  // of f32 by loads of 16 bytes
  std::size_t turn = 0;
  for (const char* name : {"scan_sum_f32", "scan_back_out_f32"}) {
    for (const std::int64_t elements :
         {std::int64_t{0}, std::int64_t{1}, kTile - 1, kTile, kTile + 1, 4 * kTile - 5}) {
      for (const int alignment : {16, 4}) {
        expect_right(program(name), codegen::gpu_target(90),
                     {.elements = elements,
                      .base_alignment = alignment,
                      .in_place = turn % 2 == 1,
                      .choice = staged(2, 3, 2, 16),
                      .options = options_of(turn)});
        ++turn;
      }
    }
  }
}

TEST(StagedScan, GoesOnFromLaunchToLaunch) {
  expect_right(program("scan_sum_i32"), codegen::gpu_target(90),
               {.elements = 1000, .chunks = 3, .choice = staged(2, 3, 2, 4)});
}

/// More than 32 tiles, so that groups are published.
TEST(StagedScan, HasTheSameBitsUnderEverySchedule) {
  struct Case {
    const char* program;
    std::int64_t segment, elements;
    int warps, depth, staged, bytes;
  };
  for (const Case& tested : {Case{"scan_sum_f32", 0, 7000, 2, 3, 2, 4},
                             {"scan_back_out_f32", 0, 9100, 1, 9, 8, 4},
                             {"scan_sum_f16", 0, 9000, 2, 4, 4, 4},
                             {"scan_horner_back_u8", 1500, 3000, 1, 2, 1, 1}}) {
    SCOPED_TRACE(tested.program);
    const Computation computation =
        program(tested.program).over(tested.segment > 0 ? segments(tested.segment) : whole());
    expect_same_bits(computation.graph(), codegen::gpu_target(90), tested.segment, tested.elements,
                     6, [&](std::size_t) {
                       return staged(tested.warps, tested.depth, tested.staged, tested.bytes);
                     });
  }
}

TEST(StagedScan, IsLegalWhereCopiesAreAndItsTilesFit) {
  const Computation computation = program("scan_sum_f32").over(whole());
  auto legal = [&](const codegen::Target& target, const PlanChoice& choice) {
    return make_plan(computation.graph(), target, {}, choice).has_value();
  };
  EXPECT_TRUE(legal(codegen::gpu_target(90), staged(8, 16, 12, 16)));
  EXPECT_TRUE(legal(codegen::gpu_target(80), staged(8, 16, 12, 16)));
  EXPECT_FALSE(legal(codegen::gpu_target(75), staged(8, 16, 12, 16)));
  EXPECT_FALSE(legal(codegen::cpu_target(2), staged(1, 16, 12, 16)));
  EXPECT_FALSE(legal(codegen::gpu_target(90), staged(8, 8, 12, 16))) << "more than all";
  EXPECT_FALSE(legal(codegen::gpu_target(90), staged(16, 32, 32, 16))) << "256 KiB";
  PlanChoice four = staged(8, 16, 12, 16);
  four.occupancy = 4;
  EXPECT_TRUE(legal(codegen::gpu_target(90), four));
  EXPECT_FALSE(legal(codegen::gpu_target(80), four)) << "192 KiB and a processor's 164";
  four.strategy = Strategy::propagate;
  EXPECT_FALSE(legal(codegen::gpu_target(90), four)) << "it does not wait";
  const PlanChoice parsed =
      codegen::parse_choice("look_back warps=8 depth=24 staged=16 tile=0 blocks=3 bytes=16 simt");
  EXPECT_EQ(to_text(parsed), "look_back warps=8 depth=24 staged=16 tile=0 blocks=3 bytes=16 simt");
  auto offered = [&](int arch) {
    const codegen::Target target = codegen::gpu_target(arch);
    for (const PlanChoice& each : plan_space(computation.graph(), target, {})) {
      if (each.strategy == Strategy::look_back && each.staged > 0) return true;
    }
    return false;
  };
  EXPECT_TRUE(offered(90));
  EXPECT_FALSE(offered(80)) << "lanes make its copies";
}

/// The default of long scans where the copy engine is, in as many bytes for every type.
TEST(StagedScan, IsTheDefaultOfLongScans) {
  auto of = [](const char* name, int arch, std::int64_t segment, int alignment = 16) {
    const Computation computation = program(name).over(segment > 0 ? segments(segment) : whole());
    return codegen::scan_choice(computation.graph(), codegen::gpu_target(arch),
                                {.segment = segment, .base_alignment = alignment});
  };
  const char* const by_rows =
      "look_back warps=8 depth=40 staged=24 near=1 tile=0 blocks=2 bytes=16 simt";
  const char* const blocked =
      "look_back warps=16 depth=42 staged=27 near=1 blocked=1 tile=0 blocks=1 bytes=16 simt";
  for (const char* name : {"scan_sum_f32", "scan_sum_f64"})
    EXPECT_EQ(to_text(of(name, 90, 0)), by_rows) << name;
  for (const char* name : {"running_sum_to_f16", "running_sum_to_bf16"}) {
    EXPECT_EQ(to_text(of(name, 90, 0)), blocked) << name;
    EXPECT_EQ(to_text(of(name, 100, 0)), blocked) << name;
    EXPECT_EQ(to_text(of(name, 120, 0)).find("blocked"), std::string::npos) << "slow f64";
  }
  EXPECT_GT(of("scan_offsets_i32", 90, 0).staged, 0);
  EXPECT_EQ(of("scan_sum_f32", 80, 0).staged, 0);
  EXPECT_EQ(of("scan_sum_f32", 90, 0, 4).staged, 0) << "by loads of one element";
  // Tiles of one segment share it evenly: two of nine rows, since one of sixteen is short by a
  // load.
  const Computation computation = program("scan_index_i16").over(segments((1 << 14) + 8));
  const auto shared = codegen::staged_scan_choice(computation.graph(), codegen::gpu_target(90),
                                                  {.segment = (1 << 14) + 8});
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->heads, 0);
  const PlanChoice odd = of("scan_sum_f32", 90, (1 << 14) + 1);  // its own loads have one element
  EXPECT_EQ(odd.heads, 1);
  EXPECT_EQ(odd.depth, 24);
  EXPECT_EQ(odd.staged, 16);
}

}  // namespace
}  // namespace chainfold::test
