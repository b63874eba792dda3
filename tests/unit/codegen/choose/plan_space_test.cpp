// The space of plans: every choice is legal, keeps the promised bound, differs from the others and
// reads back from its text.
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::PlanRequest;
using codegen::Strategy;

constexpr std::int64_t kSegments[] = {0, 1, 7, 8, 24, 32, 33, 64, 100, 257, 1000, 4096, 70000};

TEST(PlanSpace, NamesEveryStrategyOnce) {
  const std::vector<std::string_view> names = codegen::strategy_names();
  std::set<Strategy> strategies;
  for (const std::string_view name : names) {
    const PlanChoice choice = codegen::parse_choice(name);
    EXPECT_TRUE(strategies.insert(choice.strategy).second) << name;
    EXPECT_TRUE(to_text(choice).starts_with(std::string(name) + ' ')) << to_text(choice);
  }
  EXPECT_EQ(strategies.size(), static_cast<std::size_t>(Strategy::scan_grid256n) + 1);
}

TEST(PlanSpace, HoldsTheDefaultFirstAndOnlyPlansThatKeepTheBound) {
  for (const char* name : {"sum_f16", "sum_bf16", "sum_f32", "sum_f64", "sum_i8", "frames", "q6",
                           "dot_f16", "variance_f32", "filter_f16"}) {
    const Computation computation = program(name).over(whole());
    const codegen::Graph& graph = computation.graph();
    for (const char* target_name : {"cpu", "sm_75", "sm_80", "sm_90"}) {
      const codegen::Target target = codegen::parse_target(target_name);
      for (const std::int64_t segment : kSegments) {
        SCOPED_TRACE(fmt::format("{} on {}, segment {}", name, target_name, segment));
        const PlanRequest request{.segment = segment};
        const std::vector<PlanChoice> space = plan_space(graph, target, request);
        ASSERT_FALSE(space.empty());
        EXPECT_EQ(space[0], default_choice(graph, target, request));
        EXPECT_LE(space.size(), 64U);
        std::set<std::string> plans;
        for (const PlanChoice& choice : space) {
          const auto plan = make_plan(graph, target, request, choice);
          ASSERT_TRUE(plan) << to_text(choice);
          EXPECT_NO_THROW(verify(*plan, graph, target));
          EXPECT_TRUE(plans.insert(print(*plan, graph)).second) << to_text(choice);
          EXPECT_EQ(codegen::parse_choice(to_text(choice)), choice);
          for (const int alignment : {8, 4, 2, 1}) {
            EXPECT_TRUE(
                make_plan(graph, target, {.segment = segment, .base_alignment = alignment}, choice))
                << to_text(choice) << " aligned to " << alignment;
          }
          for (std::size_t f = 0; f < plan->folds.size(); ++f) {
            const double promised = graph.folds[f].result() == DType::f64   ? 160
                                    : target.arch == 0 || target.arch >= 90 ? 16
                                                                            : 32;
            EXPECT_LE(plan->folds[f].error_bound_u, promised) << to_text(choice);
          }
        }
      }
    }
  }
}

TEST(PlanSpace, OffersLanesBesideTensorCoresAndSeveralShapes) {
  const Computation computation = program("sum_f16").over(whole());
  const codegen::Target target = codegen::gpu_target(90);
  const auto space = plan_space(computation.graph(), target, {.segment = 64});
  std::set<bool> units;
  std::set<int> warps, rows;
  for (const PlanChoice& choice : space) {
    units.insert(choice.mma);
    warps.insert(choice.warps);
    rows.insert(choice.rows);
  }
  EXPECT_EQ(units.size(), 2U);
  EXPECT_GE(warps.size(), 3U);
  EXPECT_GE(rows.size(), 4U);
  std::set<int> warps_of_parts;
  for (const PlanChoice& choice : plan_space(computation.graph(), target, {.segment = 0}))
    warps_of_parts.insert(choice.warps);
  EXPECT_EQ(warps_of_parts, (std::set<int>{4, 8, 16, 32}));
  std::set<Strategy> strategies;
  for (const PlanChoice& choice : plan_space(computation.graph(), target, {.segment = 16384})) {
    if (!codegen::is_published(choice.strategy)) strategies.insert(choice.strategy);
  }
  EXPECT_EQ(strategies.size(), 2U) << "a segment of 16384 is a warp's work or a block's";
}

TEST(PlanSpace, WhatIsNotLegalIsNoPlan) {
  const Computation computation = program("sum_f16").over(whole());
  const codegen::Graph& graph = computation.graph();
  const codegen::Target gpu = codegen::gpu_target(90), cpu = codegen::cpu_target(4);
  const PlanChoice rows = codegen::parse_choice("rows warps=8 depth=1 rows=4 bytes=16 mma");
  EXPECT_TRUE(make_plan(graph, gpu, {.segment = 64}, rows));
  EXPECT_FALSE(make_plan(graph, gpu, {.segment = 0}, rows)) << "rows need a segment size";
  EXPECT_FALSE(make_plan(graph, cpu, {.segment = 64}, rows)) << "a CPU has neither warps nor mma";
  for (const char* text : {"rows warps=3", "rows warps=64", "rows depth=0", "rows rows=5",
                           "rows rows=1024", "parts parts=0", "parts parts=100000000"}) {
    EXPECT_FALSE(make_plan(graph, gpu, {.segment = 64}, codegen::parse_choice(text))) << text;
  }
}

TEST(PlanSpace, FewerLanesThanALoadHasAreThoseOfVectors) {
  const Computation computation = program("sum_f32").over(segments(100));
  const codegen::Target gpu = codegen::gpu_target(90), cpu = codegen::cpu_target(4);
  const auto make = [&](const codegen::Target& target, const std::string& text) {
    return make_plan(computation.graph(), target, {.segment = 100}, codegen::parse_choice(text));
  };
  const std::string fewer = "rows warps=1 depth=64 lanes=8 rows=4 bytes=0 simt";
  ASSERT_TRUE(make(cpu, fewer));
  EXPECT_EQ(make(cpu, fewer)->loads_a_lane(), 13);
  EXPECT_EQ(make(cpu, "rows warps=1 depth=64 lanes=32 rows=4 bytes=0 simt")->lanes_per_segment, 32);
  EXPECT_FALSE(make(cpu, "rows warps=1 depth=64 lanes=64 rows=4 bytes=0 simt"));
  EXPECT_FALSE(make(cpu, "rows warps=1 depth=8 lanes=8 rows=4 bytes=0 simt")) << "one batch";
  EXPECT_FALSE(make(cpu, "rows warps=1 depth=64 lanes=12 rows=4 bytes=0 simt"));
  EXPECT_FALSE(make(gpu, fewer));
  std::set<int> lanes;
  for (const PlanChoice& choice : plan_space(computation.graph(), cpu, {.segment = 100}))
    if (choice.strategy == Strategy::rows) lanes.insert(choice.lanes);
  EXPECT_EQ(lanes, (std::set<int>{4, 8, 16, 32}));
}

TEST(PlanSpace, LateBlocksHaveABurstAtMost) {
  const Computation computation = program("sum_f16").over(segments(64));
  const auto legal = [&](const std::string& late) {
    const std::string text =
        "staged warps=8 lanes=8 rows=4 stages=2 burst=128" + late + " blocks=2 bytes=16 mma";
    const PlanChoice choice = codegen::parse_choice(text);
    EXPECT_EQ(to_text(choice), text);
    return make_plan(computation.graph(), codegen::gpu_target(90), {.segment = 64}, choice);
  };
  const auto stay = legal(""), some = legal(" late=6"), all = legal(" late=128");
  ASSERT_TRUE(stay && some && all);
  EXPECT_FALSE(stay->has_tail_blocks() || stay->one_batch());
  EXPECT_TRUE(some->has_tail_blocks() && !some->one_batch());
  EXPECT_TRUE(all->one_batch() && !all->has_tail_blocks());
  EXPECT_FALSE(legal(" late=129"));
  EXPECT_FALSE(legal(" late=2000000000"));
  PlanChoice negative = codegen::parse_choice(
      "staged warps=8 lanes=8 rows=4 stages=2 burst=128 late=6 blocks=2 bytes=16 mma");
  negative.tail_trips = -1;
  EXPECT_FALSE(make_plan(computation.graph(), codegen::gpu_target(90), {.segment = 64}, negative));
  // Turns with late blocks and without, and one burst a block, are tried beside each other.
  for (const std::int64_t segment : {5, 64}) {
    bool tried[3] = {};
    for (const PlanChoice& choice :
         plan_space(computation.graph(), codegen::gpu_target(90), {.segment = segment})) {
      if (choice.strategy == Strategy::staged)
        tried[choice.tail_trips == 0 ? 0 : choice.tail_trips < choice.store_batch ? 1 : 2] = true;
    }
    EXPECT_TRUE(tried[0] && tried[1] && tried[2]) << segment;
  }
}

TEST(PlanSpace, ATextThatIsNoPlanIsRefusedByName) {
  for (const auto& [text, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "names no strategy"},
           {"  ", "names no strategy"},
           {"warps=8", "'warps=8' is no strategy (they are rows, elements, parts, staged"},
           {"staged depth=8", "staged has no 'depth'"},
           {"rows rows", "'rows' says nothing"},
           {"rows warps=eight", "'eight' is no number"},
           {"rows warps=-8", "'-8' is no number"},
           {"rows warps=8x", "'8x' is no number"},
           {"parts lanes=8", "has no 'lanes'"},
           {"rows late=1", "has no 'late'"},
           {"fastest warps=8", "'fastest' is no strategy"},
           {"rows columns", "'columns' says nothing"},
           {"single_pass parts=8", "has no 'parts'"}}) {
    expect_error<UserError>([text = text] { codegen::parse_choice(text); },
                            ErrorCode::invalid_argument, "plan", {why});
  }
}

}  // namespace
}  // namespace chainfold::test
