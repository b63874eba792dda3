// Scans of random shapes under every strategy: segments that fill rows and that do not, tiles of
// few elements so that all levels of look-back are there, every alignment, schedule and number of
// resident blocks, and outputs in the inputs' memory.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"
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
using codegen::Schedule;
using codegen::Strategy;

constexpr Strategy kStrategies[] = {Strategy::scan_tile, Strategy::scan_run,   Strategy::scan_block,
                                    Strategy::look_back, Strategy::look_ahead, Strategy::propagate};

class ScanShapes : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return scan_programs()[GetParam()]; }
};

TEST_P(ScanShapes, AreRight) {
  std::mt19937_64 random(2026'11'21 + GetParam());
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  constexpr int kRuns = thinned(14);
  int runs = 0;
  for (int turn = 0; turn < 400 && runs < kRuns; ++turn) {
    const int arch = pick({75, 80, 90, 100, 0});
    const codegen::Target target = arch == 0 ? codegen::cpu_target(4) : codegen::gpu_target(arch);
    PlanChoice choice{.strategy = kStrategies[random() % std::size(kStrategies)],
                      .warps = arch == 0 ? 1 : pick({1, 2, 4, 8}),
                      .depth = pick({1, 2, 3, 4, 8}),
                      .stages = pick({2, 3, 4}),
                      .staged = pick({0, 1, 2, 4}),
                      .window = arch == 0 ? pick({0, 1}) : 0,
                      .occupancy = arch == 0 ? 0 : pick({0, 1, 2}),
                      .tile = arch == 0 ? 1 : 0,
                      .bytes = pick({4, 8, 16}),
                      .mma = false};
    if (choice.strategy != Strategy::look_back || arch == 0) choice.staged = 0;
    if (arch == 0) {
      const bool stays = choice.strategy == Strategy::look_ahead;
      choice.occupancy = stays ? 1 : 0;
      if (!stays && choice.strategy != Strategy::look_back) choice.window = 0;
    }
    InterpCase c{.choice = choice};
    c.segment =
        pick({0, 1, 1 + static_cast<int>(random() % 33), 1 + static_cast<int>(random() % 33), 37,
              64, 100, 256, 777, 1000, 1024, 4096});
    // Where a block or a warp works on one segment at a time, short ones cost most.
    const bool many = choice.strategy == Strategy::scan_tile || c.segment == 0;
    const std::int64_t most = std::min<std::int64_t>(
        4000, many ? 4000 : c.segment * std::max(2, 40 / (choice.warps * choice.depth)));
    c.elements = c.segment == 0 ? static_cast<std::int64_t>(random() % most)
                                : c.segment * (1 + static_cast<std::int64_t>(random() >> 1) %
                                                       std::max<std::int64_t>(1, most / c.segment));
    const Computation computation = tested().over(c.segment > 0 ? segments(c.segment) : whole());
    const codegen::Graph& graph = computation.graph();
    c.base_alignment = pick({16, 16, 8, codegen::widest_of_scan(graph)});
    if (!make_plan(graph, target, {.segment = c.segment, .base_alignment = c.base_alignment},
                   choice))
      continue;
    c.fill = tested().fills[random() % tested().fills.size()];
    c.seed = random() % 1000;
    c.in_place = pick({0, 1}) == 1;
    c.options = {.schedule = static_cast<Schedule>(random() % 3),
                 .seed = random() % 1000,
                 .resident_blocks = pick({1, 2, 5})};
    expect_right(tested(), target, c);
    ++runs;
  }
  EXPECT_EQ(runs, kRuns);
}

TEST_P(ScanShapes, OfDefaultPlansAreRight) {
  std::size_t turn = GetParam();
  for (const char* name : {"sm_75", "sm_90", "cpu"}) {
    const codegen::Target target = codegen::parse_target(name);
    for (const std::int64_t segment : {0, 0, 3, 5, 37, 256, 3000}) {
      if (++turn % (4 * kThin) != 0) continue;
      const std::int64_t whole[] = {0, 1, 777, 9001};
      InterpCase c{.segment = segment,
                   .elements = segment == 0 ? whole[turn / 4 % 4] : segment * (6001 / segment),
                   .fill = tested().fills[turn % tested().fills.size()],
                   .seed = turn};
      c.options.schedule = static_cast<Schedule>(turn % 3);
      expect_right(tested(), target, c);
    }
  }
}

/// Blocks that hold several segments, which begin anywhere in loads: of the last one some may be
/// missing. Segments are shorter than a row, longer than one, and longer than a warp's run.
TEST_P(ScanShapes, OfBlocksOfSegmentsAreRight) {
  std::mt19937_64 random(2026'11'22 + GetParam());
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  constexpr int kRuns = thinned(5);
  constexpr std::int64_t kMostElements = 6000;
  int runs = 0;
  for (int turn = 0; turn < 1000 && runs < kRuns; ++turn) {
    const codegen::Target target = codegen::gpu_target(pick({75, 80, 90}));
    const PlanChoice choice{.strategy = Strategy::scan_block,
                            .warps = pick({1, 2, 3, 5, 8}),
                            .depth = pick({1, 2, 3, 5}),
                            .occupancy = pick({0, 1}),
                            .bytes = pick({4, 8, 16}),
                            .mma = false};
    InterpCase c{.choice = choice};
    c.segment = pick({1 + static_cast<int>(random() % 33), 77, 98, 150, 255, 333, 401, 502});
    const Computation computation = tested().over(segments(c.segment));
    const codegen::Graph& graph = computation.graph();
    c.base_alignment = pick({16, 8, codegen::widest_of_scan(graph)});
    const auto plan = make_plan(graph, target,
                                {.segment = c.segment, .base_alignment = c.base_alignment}, choice);
    if (!plan || plan->scan.tile_segments == 0) continue;
    const std::int64_t held = plan->scan.tile_segments;
    const std::int64_t count =
        held * pick({0, 1, 1}) + static_cast<std::int64_t>(random() % 3) % held;
    c.elements = c.segment * count;
    if (c.elements > kMostElements) continue;
    c.fill = tested().fills[random() % tested().fills.size()];
    c.seed = random() % 1000;
    c.in_place = pick({0, 1}) == 1;
    c.options = {.schedule = static_cast<Schedule>(random() % 3), .seed = random() % 1000};
    expect_right(tested(), target, c);
    ++runs;
  }
  const Computation computation = tested().over(segments(3));
  const codegen::Graph& graph = computation.graph();
  EXPECT_EQ(runs,
            codegen::widest_of_scan(graph) < codegen::gpu_target(90).vector_bytes ? kRuns : 0);
}

INSTANTIATE_TEST_SUITE_P(All, ScanShapes, testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

/// What has a value a segment is there, though no element is.
TEST(ScanOfNothing, HasItsFolds) {
  for (const char* name : {"scan_beside_fold_f32", "scan_back_beside_fold_i32"}) {
    for (const char* target : {"sm_90", "cpu"}) {
      for (const char* choice : {"look_back", "propagate"}) {
        InterpCase c{.choice = codegen::parse_choice(
                         fmt::format("{} warps=1 depth=1 tile={} blocks=0 bytes=16 simt", choice,
                                     std::string_view(target) == "cpu" ? 1 : 0))};
        expect_right(program(name), codegen::parse_target(target), c);
      }
    }
  }
}

/// More than 32 * 32 tiles: groups of groups of tiles, which the last level adds up one by one.
TEST(ScanLevels, LookBackHasThree) {
  for (const char* name : {"scan_sum_i8", "scan_back_out_f32", "scan_horner_back_u8"}) {
    const TestProgram& tested = program(name);
    const PlanChoice choice{.strategy = Strategy::look_back, .bytes = 1, .mma = false};
    InterpCase c{.elements = 32 * (2 * 1024 + 65) + 7, .fill = Fill::whole, .choice = choice};
    c.options = {.schedule = Schedule::random, .seed = 5, .resident_blocks = 5};
    c.base_alignment = size_of(tested.over(whole()).graph().inputs[0].type);
    expect_right(tested, codegen::gpu_target(90), c);
  }
}

/// The same bits however the blocks happen to run.
TEST(ScanSchedules, DoNotChangeTheBits) {
  struct Case {
    const char *program, *target;
    std::int64_t segment, elements;
    const char* choice;
  };
  const Case cases[] = {
      {"scan_sum_f16", "sm_90", 0, 9000, "look_back warps=1 depth=1 blocks=0 bytes=4 simt"},
      {"scan_sum_f32", "sm_80", 3000, 9000, "look_back warps=2 depth=1 blocks=0 bytes=4 simt"},
      {"scan_back_out_f32", "sm_90", 0, 9000, "look_back warps=4 depth=1 blocks=0 bytes=4 simt"},
      {"scan_variance_f32", "sm_90", 0, 4000, "look_back warps=1 depth=1 blocks=0 bytes=4 simt"},
      {"scan_sum_f16", "sm_90", 0, 9000,
       "look_back warps=2 depth=3 staged=2 blocks=0 bytes=4 simt"},
      {"scan_sum_f16", "sm_90", 0, 9000,
       "look_ahead warps=1 depth=1 stages=3 blocks=1 bytes=4 simt"},
      {"scan_sum_f32", "sm_90", 0, 9000, "propagate warps=1 depth=1 blocks=0 bytes=4 simt"},
      {"scan_sum_f64", "sm_90", 1000, 6000, "scan_block warps=8 depth=4 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "sm_90", 37, 3700, "scan_tile warps=2 depth=4 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "sm_90", 333, 3330, "scan_block warps=3 depth=4 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "cpu", 0, 9000, "look_back warps=1 depth=4 tile=1 bytes=16 simt"},
      {"scan_sum_f32", "cpu", 0, 9000,
       "look_ahead warps=1 depth=4 near=1 tile=1 stages=2 blocks=1 bytes=16 simt"},
  };
  for (const Case& tested : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", tested.program, tested.segment, tested.choice));
    const Computation computation =
        program(tested.program).over(tested.segment > 0 ? segments(tested.segment) : whole());
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::parse_target(tested.target);
    const auto plan =
        make_plan(graph, target, {.segment = tested.segment}, codegen::parse_choice(tested.choice));
    ASSERT_TRUE(plan);
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    const auto inputs = make_inputs(graph, tested.elements, Fill::normal, 3);
    InterpCase c{.segment = tested.segment, .elements = tested.elements};
    std::vector<Column> first;
    std::uint64_t seed = 0;
    for (const Schedule schedule :
         {Schedule::in_order, Schedule::reversed, Schedule::random, Schedule::random}) {
      c.options = {.schedule = schedule, .seed = ++seed};
      c.options.resident_blocks = seed % 2 == 0 ? 1 : 7;
      auto outputs = interpret_graph(graph, compiled, inputs, {}, c);
      if (first.empty()) first = std::move(outputs);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        for (std::int64_t i = 0; i < outputs[o].count(); ++i)
          ASSERT_EQ(outputs[o].get(i), first[o].get(i)) << "value " << i;
      }
    }
  }
}

/// One element that is not finite changes what follows it in its segment, to the bit nothing else.
TEST(ScanContainment, EarlierPrefixesAndOtherSegmentsAreUnharmed) {
  struct Case {
    const char *program, *target;
    std::int64_t segment, elements;
    const char* choice;
  };
  const Case cases[] = {
      {"scan_sum_f16", "sm_90", 8, 512, "scan_tile warps=1 depth=2 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "sm_90", 2, 256, "scan_tile warps=1 depth=2 blocks=0 bytes=16 simt"},
      {"scan_sum_f16", "sm_90", 37, 444, "scan_tile warps=1 depth=4 blocks=0 bytes=16 simt"},
      {"scan_back_out_f32", "sm_90", 37, 444, "scan_tile warps=1 depth=4 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "sm_90", 300, 900, "scan_block warps=4 depth=1 blocks=0 bytes=16 simt"},
      {"scan_back_out_f32", "sm_90", 300, 900, "scan_block warps=4 depth=1 blocks=0 bytes=16 simt"},
      {"scan_sum_f16", "sm_90", 77, 77 * 13, "scan_block warps=3 depth=1 blocks=0 bytes=16 simt"},
      {"scan_sum_f16", "sm_90", 333, 333 * 4, "scan_block warps=3 depth=4 blocks=0 bytes=8 simt"},
      {"scan_back_out_f32", "sm_90", 401, 401 * 5,
       "scan_block warps=5 depth=3 blocks=0 bytes=16 simt"},
      {"scan_sum_f32", "sm_90", 0, 1500, "look_back warps=2 depth=1 blocks=0 bytes=4 simt"},
      {"scan_back_out_f32", "sm_90", 500, 1500, "look_back warps=2 depth=1 blocks=0 bytes=4 simt"},
      {"scan_back_out_f32", "sm_90", 500, 1500,
       "look_back warps=2 depth=2 staged=1 blocks=0 bytes=4 simt"},
      {"scan_sum_f32", "sm_90", 0, 1500,
       "look_ahead warps=2 depth=1 stages=4 blocks=1 bytes=4 simt"},
      {"scan_sum_f16", "sm_90", 500, 1500, "propagate warps=2 depth=1 blocks=0 bytes=4 simt"},
      {"scan_sum_f32", "cpu", 100, 500, "scan_run warps=1 depth=2 blocks=0 bytes=16 simt"},
      {"scan_back_out_f16", "cpu", 0, 2500, "look_back warps=1 depth=2 tile=1 bytes=16 simt"},
      {"scan_back_out_f16", "cpu", 0, 2500,
       "look_ahead warps=1 depth=2 near=1 tile=1 stages=2 blocks=1 bytes=16 simt"},
  };
  const double bad[] = {std::nan(""), HUGE_VAL, -HUGE_VAL};
  for (const Case& tested : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", tested.program, tested.segment, tested.choice));
    const Computation computation =
        program(tested.program).over(tested.segment > 0 ? segments(tested.segment) : whole());
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::parse_target(tested.target);
    const auto plan =
        make_plan(graph, target, {.segment = tested.segment}, codegen::parse_choice(tested.choice));
    ASSERT_TRUE(plan);
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    const InterpCase c{.segment = tested.segment, .elements = tested.elements};
    std::vector<Column> inputs = make_inputs(graph, tested.elements, Fill::uniform, 5);
    const Column clean = std::move(interpret_graph(graph, compiled, inputs, {}, c)[0]);
    const bool backward = std::string_view(tested.program).find("back") != std::string_view::npos;
    const std::int64_t segment = tested.segment > 0 ? tested.segment : tested.elements;
    int turn = 0;
    for (std::int64_t at = 0; at < tested.elements; at += tested.elements / 17 + 1) {
      const Bits before = inputs[0].get(at);
      inputs[0].set_double(at, bad[turn++ % 3]);
      const Column spoiled = std::move(interpret_graph(graph, compiled, inputs, {}, c)[0]);
      inputs[0].set(at, before);
      for (std::int64_t i = 0; i < tested.elements; ++i) {
        // The backward ones are exclusive.
        const bool reached = i / segment == at / segment && (backward ? i < at : i >= at);
        const double value = codegen::double_of_bits(spoiled.type(), spoiled.get(i));
        if (reached) {
          ASSERT_FALSE(std::isfinite(value)) << "element " << at << " is not in value " << i;
        } else {
          ASSERT_EQ(spoiled.get(i), clean.get(i)) << "element " << at << " changed value " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace chainfold::test
