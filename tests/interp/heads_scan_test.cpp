// look_back over tiles of all segments, which begin anywhere in them: every program of scans with
// segments of about a tile, of many and of parts of one, out of registers and of shared memory,
// under every schedule, in place, and with what is not finite kept in its segment.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include <fmt/format.h>

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

PlanChoice heads(int warps, int depth, int staged, int bytes) {
  return {.strategy = Strategy::look_back,
          .warps = warps,
          .depth = depth,
          .staged = staged,
          .heads = 1,
          .bytes = bytes,
          .mma = false};
}

class HeadsScan : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return scan_programs()[GetParam()]; }
};

TEST_P(HeadsScan, IsRight) {
  std::mt19937_64 random(2026'11'22 + GetParam());
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  constexpr int kRuns = thinned(8);
  constexpr std::int64_t kMostElements = 4000;
  int runs = 0;
  for (int turn = 0; turn < 300 && runs < kRuns; ++turn) {
    const codegen::Target target = codegen::gpu_target(static_cast<int>(pick({75, 80, 90})));
    const auto depth = static_cast<int>(pick({1, 2, 3, 5}));
    const PlanChoice choice = heads(static_cast<int>(pick({1, 2, 4})), depth,
                                    target.arch < 80 ? 0 : static_cast<int>(pick({0, 1, depth})),
                                    static_cast<int>(pick({4, 8, 16})));
    InterpCase c{.choice = choice};
    const Computation computation = tested().over(segments(1));
    const codegen::Graph& graph = computation.graph();
    c.base_alignment = static_cast<int>(pick({16, 16, codegen::widest_of_scan(graph)}));
    codegen::PlanRequest request{.segment = 4099, .base_alignment = c.base_alignment};
    const auto plan = make_plan(graph, target, request, choice);
    if (!plan) continue;
    const std::int64_t tile = plan->scan.tile, many = 3 * tile + 1 + pick({0, 1, 3, 5, 7});
    c.segment = pick({tile - 1, tile + 1, tile, tile / 2 + 1, many, many, 37, 2 * tile + 6,
                      1 + static_cast<std::int64_t>(random() % 40)});
    request.segment = c.segment;  // short ones of f64 may err less than this
    if (!make_plan(graph, target, request, choice)) continue;
    const std::int64_t most = std::max<std::int64_t>(1, kMostElements / c.segment);
    c.elements = c.segment * (1 + static_cast<std::int64_t>(random() % 1000) % most);
    c.fill = tested().fills[random() % tested().fills.size()];
    c.seed = random() % 1000;
    c.in_place = random() % 2 == 0;
    c.options = options_of(random() % 6);
    expect_right(tested(), target, c);
    ++runs;
  }
  const Computation computation = tested().over(segments(1));
  EXPECT_EQ(runs, codegen::heads_serve(computation.graph(), 1) ? kRuns : 0);
}

INSTANTIATE_TEST_SUITE_P(All, HeadsScan, testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

/// Sizes that have nothing in common with a tile, or much, and a memory that ends anywhere.
TEST(HeadsScanShapes, SegmentsAndMemoryEndAnywhere) {
  std::size_t turn = 0;
  for (const char* name : {"scan_sum_f16", "scan_back_out_f32", "scan_exclusive_i8",
                           "scan_argmin_f32", "scan_argmax_back_i16", "scan_index_i16"}) {
    for (const std::int64_t segment : {4099, 1026, 1532, 767, 769}) {
      for (const std::int64_t count : {1, 5}) {
        if (segment * count > 8000) continue;
        expect_right(program(name), codegen::gpu_target(90),
                     {.segment = segment,
                      .elements = segment * count,
                      .in_place = turn % 2 == 1,
                      .choice = heads(2, 3, turn % 3 == 0 ? 0 : 2, 16),
                      .options = options_of(turn)});
        ++turn;
      }
    }
  }
  expect_right(program("scan_sum_f32"), codegen::gpu_target(90),
               {.segment = 4099, .elements = 0, .choice = heads(2, 3, 2, 16)});
}

/// More than 32 * 32 tiles of 32 elements, and segments that begin in groups of every level: what
/// comes before a tile are slots of all three, from the middle of a group on.
TEST(HeadsScanShapes, LookBackHasThreeLevels) {
  struct Case {
    const char* program;
    std::int64_t segment;
  };
  for (const Case& tested : {Case{"scan_sum_f32", 67'001},
                             {"scan_back_out_f32", 35'003},
                             {"scan_horner_back_u8", 67'001}}) {
    const TestProgram& scan = program(tested.program);
    const Computation computation = scan.over(segments(tested.segment));
    InterpCase c{.segment = tested.segment,
                 .elements = 70'006 / tested.segment * tested.segment,
                 .fill = Fill::whole,
                 .choice = heads(1, 1, 0, 2 * codegen::widest_of_scan(computation.graph()))};
    c.options = {.schedule = codegen::Schedule::random, .seed = 5, .resident_blocks = 5};
    expect_right(scan, codegen::gpu_target(90), c);
  }
}

/// Their bits do not depend on who was faster, nor on where a tile's rows wait.
TEST(HeadsScanShapes, HaveTheSameBitsUnderEverySchedule) {
  struct Case {
    const char* program;
    std::int64_t segment, count;
    int warps, depth, bytes;
  };
  for (const Case& tested : {Case{"scan_sum_f32", 4099, 2, 1, 2, 8},
                             {"scan_back_out_f32", 2501, 3, 2, 2, 8},
                             {"scan_sum_f16", 333, 27, 1, 3, 8},
                             {"scan_variance_f32", 1501, 2, 2, 2, 8}}) {
    SCOPED_TRACE(tested.program);
    const Computation computation = program(tested.program).over(segments(tested.segment));
    expect_same_bits(computation.graph(), codegen::gpu_target(90), tested.segment,
                     tested.segment * tested.count, 4, [&](std::size_t turn) {
                       return heads(tested.warps, tested.depth, turn < 2 ? 0 : tested.depth,
                                    tested.bytes);
                     });
  }
}

/// Nothing of a segment is in another one, whether it shares a load, a row, a run or a tile.
TEST(HeadsScanShapes, KeepWhatIsNotFiniteInItsSegment) {
  struct Case {
    const char* program;
    std::int64_t segment, count;
    PlanChoice choice;
  };
  for (const Case& tested : {Case{"scan_sum_f16", 77, 11, heads(2, 2, 0, 16)},
                             {"scan_sum_f16", 333, 4, heads(2, 3, 2, 8)},
                             {"scan_back_out_f32", 401, 4, heads(2, 2, 1, 16)},
                             {"scan_back_out_f32", 131, 9, heads(1, 3, 0, 16)}}) {
    SCOPED_TRACE(fmt::format("{} {}", tested.program, tested.segment));
    const Computation computation = program(tested.program).over(segments(tested.segment));
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::gpu_target(90);
    const auto plan = make_plan(graph, target, {.segment = tested.segment}, tested.choice);
    ASSERT_TRUE(plan);
    const codegen::Compiled compiled = codegen::compile_plan(graph, target, *plan);
    const InterpCase c{.segment = tested.segment, .elements = tested.segment * tested.count};
    std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::uniform, 5);
    const Column clean = std::move(interpret_graph(graph, compiled, inputs, {}, c)[0]);
    const bool backward = std::string_view(tested.program).find("back") != std::string_view::npos;
    for (std::int64_t at = 0; at < c.elements; at += c.elements / 13 + 1) {
      const Bits before = inputs[0].get(at);
      inputs[0].set_double(at, at % 2 == 0 ? std::nan("") : HUGE_VAL);
      const Column spoiled = std::move(interpret_graph(graph, compiled, inputs, {}, c)[0]);
      inputs[0].set(at, before);
      for (std::int64_t i = 0; i < c.elements; ++i) {
        // The backward ones are exclusive.
        const bool same = i / tested.segment == at / tested.segment;
        if (same && (backward ? i < at : i >= at)) {
          ASSERT_FALSE(std::isfinite(codegen::double_of_bits(spoiled.type(), spoiled.get(i))))
              << "element " << at << " is not in value " << i;
        } else {
          ASSERT_EQ(spoiled.get(i), clean.get(i)) << "element " << at << " changed value " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace chainfold::test
