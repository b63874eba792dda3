// look_back whose tickets go across segments: groups that are whole and that are not, forward and
// backward, at every level of the tree, under every schedule, and to the bit what the same tiles
// give segment by segment.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

PlanChoice across(int segments, int warps, int depth, int staged, int bytes) {
  return {.strategy = Strategy::look_back,
          .warps = warps,
          .depth = depth,
          .staged = staged,
          .interleaved = segments,
          .bytes = bytes,
          .mma = false};
}

class AcrossScan : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return scan_programs()[GetParam()]; }
};

/// Every program that look_back serves, with as many segments as a group has, fewer and more.
TEST_P(AcrossScan, IsRight) {
  std::mt19937_64 random(2026'11'23 + GetParam());
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  constexpr int kRuns = thinned(8);
  int runs = 0;
  for (int turn = 0; turn < 300 && runs < kRuns; ++turn) {
    const codegen::Target target = codegen::gpu_target(static_cast<int>(pick({75, 80, 90})));
    const auto depth = static_cast<int>(pick({1, 2, 3}));
    const int staged = target.arch < 80 ? 0 : static_cast<int>(pick({0, 1, depth}));
    const auto together = static_cast<int>(pick({2, 3, 4, 64}));
    InterpCase c{.choice = across(together, static_cast<int>(pick({1, 2})), depth, staged,
                                  static_cast<int>(pick({1, 4, 8})))};
    const int size = codegen::widest_of_scan(tested().over(segments(1)).graph());
    c.base_alignment = static_cast<int>(pick({16, 16, size}));
    const std::int64_t tile = std::int64_t{codegen::kWarpWidth} * depth * c.choice->warps *
                              std::max(1, c.choice->bytes / size);
    c.segment = tile * pick({1, 2, 5}) + pick({1, 7, 8, tile / 2, tile});
    c.elements = c.segment * pick({1, 3, 4, 6, 9});
    const Computation computation = tested().over(segments(c.segment));
    const codegen::PlanRequest request{.segment = c.segment, .base_alignment = c.base_alignment};
    if (!make_plan(computation.graph(), target, request, *c.choice)) continue;
    c.fill = tested().fills[random() % tested().fills.size()];
    c.seed = random() % 1000;
    c.in_place = random() % 2 == 0;
    c.options = options_of(random() % 6);
    expect_right(tested(), target, c);
    ++runs;
  }
  const codegen::Graph graph = tested().over(segments(1)).graph();
  EXPECT_EQ(runs, scans_both_ways(graph) || broadcasts(graph) ? 0 : kRuns);
}

INSTANTIATE_TEST_SUITE_P(All, AcrossScan, testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

/// Groups of four: alone in one, short ones, behind whole ones, none at all.
TEST(AcrossScanShapes, TheLastGroupHasFewer) {
  std::size_t turn = 0;
  for (const char* name : {"scan_sum_f32", "scan_back_out_f32", "scan_horner_u8",
                           "scan_horner_back_u8", "scan_exclusive_i8"}) {
    for (const std::int64_t count : {0, 1, 3, 4, 6, 9}) {
      for (const int resident : {1, 2, 7}) {
        InterpCase c{.segment = 1100,
                     .elements = 1100 * count,
                     .in_place = turn % 2 == 1,
                     .choice = across(4, 1, 2, turn % 3 == 0 ? 0 : 1, 1)};
        c.options = options_of(turn++);
        c.options.resident_blocks = resident;
        expect_right(program(name), codegen::gpu_target(90), c);
      }
    }
  }
}

/// More than 32 * 32 tiles a segment, some groups of them looked at one by one.
TEST(AcrossScanShapes, LookBackHasThreeLevels) {
  struct Case {
    const char* program;
    std::int64_t segment, count;
    int near;
  };
  std::size_t turn = 0;
  for (const Case& tested : {Case{"scan_sum_f32", 34'000, 3, 0},
                             {"scan_horner_back_u8", 33'001, 3, 0},
                             {"scan_back_out_f32", 275'000, 2, 3},
                             {"scan_horner_u8", 264'500, 2, 1}}) {
    PlanChoice choice = across(tested.near > 0 ? 3 : 2, tested.near > 0 ? 8 : 1, 1, 0, 1);
    choice.window = tested.near;
    InterpCase c{.segment = tested.segment,
                 .elements = tested.segment * tested.count,
                 .fill = Fill::whole,
                 .choice = choice};
    c.options = {.schedule = codegen::Schedule::random, .seed = turn++, .resident_blocks = 5};
    expect_right(program(tested.program), codegen::gpu_target(90), c);
  }
}

/// The tree does not depend on who takes which tile.
TEST(AcrossScanShapes, HasTheBitsOfTilesSegmentBySegment) {
  struct Case {
    const char* program;
    std::int64_t segment, count;
  };
  for (const Case& tested : {Case{"scan_sum_f32", 4200, 5},
                             {"scan_back_out_f32", 2504, 3},
                             {"scan_sum_f16", 4500, 6},
                             {"scan_variance_f32", 1504, 4}}) {
    SCOPED_TRACE(tested.program);
    const Computation computation = program(tested.program).over(segments(tested.segment));
    for (const int staged : {0, 1}) {
      expect_same_bits(computation.graph(), codegen::gpu_target(90), tested.segment,
                       tested.segment * tested.count, 6, [&](std::size_t turn) {
                         constexpr int kAcross[] = {0, 2, 4, 64, 4, 3};
                         return across(kAcross[turn], 1, 2, staged, 4);
                       });
    }
  }
}

/// What the interpreter says of a program that names other publishers.
TEST(AcrossScanShapes, WaitsForWhoPublishes) {
  const Computation computation = program("scan_sum_f32").over(segments(600));
  const codegen::Graph& graph = computation.graph();
  const codegen::Target target = codegen::gpu_target(90);
  const auto plan = make_plan(graph, target, {.segment = 600}, across(4, 1, 1, 0, 4));
  ASSERT_TRUE(plan);
  codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
  const std::function<void(codegen::Region&)> next_to_each_other = [&](codegen::Region& region) {
    for (codegen::Instr& instr : region.body) {
      if (auto* await = std::get_if<codegen::Await>(&instr.op)) await->stride = await->count;
      codegen::for_each_region(instr.op, next_to_each_other);
    }
  };
  next_to_each_other(compiled.program.launches.back().body);
  codegen::verify(compiled.program);
  const auto inputs = make_inputs(graph, 600 * 5, Fill::uniform, 1);
  EXPECT_THROW(interpret_graph(graph, compiled, inputs, {}, {.segment = 600, .elements = 600 * 5}),
               InternalError);
}

TEST(AcrossScanShapes, IsLegalOfTilesThatWaitForTheirOwnSegment) {
  const codegen::Target gpu = codegen::gpu_target(90);
  auto legal = [](std::int64_t segment, const codegen::Target& target, const PlanChoice& choice) {
    const Computation computation =
        program("scan_sum_f32").over(segment > 0 ? segments(segment) : whole());
    return make_plan(computation.graph(), target, {.segment = segment}, choice).has_value();
  };
  const PlanChoice choice = across(64, 8, 16, 12, 16);
  EXPECT_TRUE(legal(1 << 20, gpu, choice));
  EXPECT_TRUE(legal(16'388, gpu, choice)) << "two tiles";
  EXPECT_FALSE(legal(16'384, gpu, choice)) << "nobody waits";
  EXPECT_FALSE(legal(0, gpu, choice)) << "there is but one";
  EXPECT_FALSE(legal(std::int64_t{1} << 40, gpu, choice)) << "2^32 tiles a group";
  PlanChoice other = choice;
  other.interleaved = 1;
  EXPECT_FALSE(legal(1 << 20, gpu, other)) << "that is none";
  other = choice;
  other.heads = 1;
  EXPECT_FALSE(legal(1 << 20, gpu, other)) << "tiles are of neighbours, too";
  for (const Strategy strategy : {Strategy::propagate, Strategy::look_ahead}) {
    other = across(64, 8, 4, 0, 16);
    other.strategy = strategy;
    other.stages = 3;
    other.occupancy = 1;
    EXPECT_FALSE(legal(1 << 20, gpu, other));
    other.interleaved = 0;
    EXPECT_TRUE(legal(1 << 20, gpu, other));
  }
  other = {.strategy = Strategy::look_back, .warps = 1, .depth = 8, .tile = 1, .mma = false};
  EXPECT_TRUE(legal(1 << 20, codegen::cpu_target(2), other));
  other.interleaved = 4;
  EXPECT_FALSE(legal(1 << 20, codegen::cpu_target(2), other)) << "threads read ahead";
}

TEST(AcrossScanShapes, SaysSoInItsText) {
  const char* text =
      "look_back warps=8 depth=16 staged=12 near=1 across=64 tile=0 blocks=4 bytes=16 simt";
  const PlanChoice choice = codegen::parse_choice(text);
  EXPECT_EQ(choice.interleaved, 64);
  EXPECT_EQ(to_text(choice), text);
  const Computation computation = program("scan_sum_f32").over(segments(1 << 20));
  const auto plan =
      make_plan(computation.graph(), codegen::gpu_target(90), {.segment = 1 << 20}, choice);
  ASSERT_TRUE(plan);
  const std::string told = print(*plan, computation.graph());
  EXPECT_NE(told.find("takes tiles of 64 segments in turn"), std::string::npos) << told;
}

/// Measuring may find it where segments take many tiles.
TEST(AcrossScanShapes, IsOfferedForSegmentsOfManyTiles) {
  auto offered = [](std::int64_t segment, int arch) {
    const Computation computation =
        program("scan_sum_f32").over(segment > 0 ? segments(segment) : whole());
    const auto space =
        plan_space(computation.graph(), codegen::gpu_target(arch), {.segment = segment});
    return std::any_of(space.begin(), space.end(),
                       [](const PlanChoice& each) { return each.interleaved > 0; });
  };
  EXPECT_TRUE(offered(1 << 24, 90));
  EXPECT_TRUE(offered(10'000'000, 90));
  EXPECT_TRUE(offered(1 << 24, 80));
  EXPECT_FALSE(offered(0, 90));
  EXPECT_FALSE(offered(1024, 90));
}

/// Where the copy engine is, and of segments that begin on wide loads.
TEST(AcrossScanShapes, IsTheDefaultOfSegmentsOfManyTiles) {
  auto of = [](const char* name, std::int64_t segment, int arch = 90) {
    const Computation computation = program(name).over(segments(segment));
    return codegen::choose_plan(computation.graph(), codegen::gpu_target(arch),
                                {.segment = segment});
  };
  for (const char* name : {"running_sum_to_f16", "scan_sum_f32", "scan_sum_f64"}) {
    for (const std::int64_t segment : {1 << 24, 10'000'000}) {
      const codegen::Plan plan = of(name, segment);
      EXPECT_GT(plan.scan.interleaved, 1) << name << " " << segment;
      EXPECT_GT(plan.scan.staged_rows, 0) << name << " " << segment;
      EXPECT_EQ(plan.scan.ragged, segment % plan.scan.tile != 0) << name << " " << segment;
      EXPECT_EQ(of(name, segment, 80).scan.interleaved, 0);
    }
    EXPECT_EQ(of(name, 1 << 18).scan.interleaved, 0) << "a few tiles";
    EXPECT_EQ(of(name, 10'000'001).scan.interleaved, 0) << "loads would be of one";
  }
  const codegen::Plan backward = of("scan_back_out_f32", 10'000'000);
  EXPECT_GT(backward.scan.interleaved, 1);
  EXPECT_TRUE(backward.scan.ragged);
}

}  // namespace
}  // namespace chainfold::test
