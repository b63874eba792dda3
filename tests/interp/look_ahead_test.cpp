// Scans by blocks that stay: tiles taken by tickets and copied ahead, under every schedule, with
// few and many blocks, at every alignment and in place, and to the bit what look_back gives, whose
// tree of folds is the same.
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/tests/support/expect_scan.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

PlanChoice ahead(int warps, int depth, int stages, int bytes) {
  return {.strategy = Strategy::look_ahead,
          .warps = warps,
          .depth = depth,
          .stages = stages,
          .occupancy = 1,
          .bytes = bytes,
          .mma = false};
}

/// Every program of scans that has one direction and no folds of elements, as far as it is legal.
TEST(LookAhead, ServesEveryProgram) {
  std::size_t turn = 0, served = 0;
  for (const TestProgram& tested : scan_programs()) {
    const codegen::Graph graph = tested.over(whole()).graph();
    const int size = codegen::widest_of_scan(graph);
    for (const std::int64_t segment : {0, 96 * 16 / size}) {
      const codegen::Target target = codegen::gpu_target(90, 1 + static_cast<int>(turn % 3));
      ++turn;
      InterpCase c{
          .segment = segment,
          .elements = segment > 0 ? segment * 5 : 700 + static_cast<std::int64_t>(turn),
          .fill = tested.fills[turn % tested.fills.size()],
          .seed = turn,
          .base_alignment = turn % 4 == 3 ? size : 16,
          .in_place = turn % 3 != 0,
          .choice = ahead(1 + static_cast<int>(turn % 2), 1 + static_cast<int>(turn / 2 % 2),
                          2 + static_cast<int>(turn % 4), turn % 5 == 0 ? 16 : 4),
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

TEST(LookAhead, TilesMayEndAnywhere) {
  constexpr std::int64_t kTile = 2 * 32 * 4;  // of f32 by loads of 16 bytes
  std::size_t turn = 0;
  for (const char* name : {"scan_sum_f32", "scan_back_out_f32"}) {
    for (const std::int64_t elements :
         {std::int64_t{0}, std::int64_t{1}, kTile - 1, kTile, kTile + 1, 9 * kTile - 5}) {
      for (const int alignment : {16, 4}) {
        expect_right(program(name), codegen::gpu_target(90, 2),
                     {.elements = elements,
                      .base_alignment = alignment,
                      .in_place = turn % 2 == 1,
                      .choice = ahead(2, 1, 3, 16),
                      .options = options_of(turn)});
        ++turn;
      }
    }
  }
}

TEST(LookAhead, GoesOnFromLaunchToLaunch) {
  expect_right(program("scan_sum_i32"), codegen::gpu_target(90, 2),
               {.elements = 1000, .chunks = 3, .choice = ahead(2, 1, 3, 4)});
}

/// More than 32 tiles: groups are published, by blocks that hold later tickets already.
TEST(LookAhead, HasTheBitsOfLookBackUnderEverySchedule) {
  struct Case {
    const char* program;
    std::int64_t segment, elements;
    int warps, bytes;
  };
  for (const Case& tested : {Case{"scan_sum_f32", 0, 3000, 2, 4},
                             {"scan_back_out_f32", 0, 2200, 1, 4},
                             {"scan_horner_back_u8", 1500, 3000, 1, 1}}) {
    SCOPED_TRACE(tested.program);
    const Computation computation =
        program(tested.program).over(tested.segment > 0 ? segments(tested.segment) : whole());
    const codegen::Graph& graph = computation.graph();
    const codegen::Target target = codegen::gpu_target(90, 3);
    const auto inputs = make_inputs(graph, tested.elements, Fill::normal, 3);
    auto compiled = [&](PlanChoice choice) {
      const auto plan = make_plan(graph, target, {.segment = tested.segment}, choice);
      if (!plan) throw std::invalid_argument(to_text(choice));
      return codegen::compile_plan(graph, target, *plan);
    };
    PlanChoice choice = ahead(tested.warps, 1, 4, tested.bytes);
    const codegen::Compiled staying = compiled(choice);
    choice.strategy = Strategy::look_back;
    choice.stages = 0;
    InterpCase c{.segment = tested.segment, .elements = tested.elements};
    const auto expected = interpret_graph(graph, compiled(choice), inputs, {}, c);
    for (std::size_t turn = 0; turn < 6; ++turn) {
      c.options = options_of(turn);
      const auto outputs = interpret_graph(graph, staying, inputs, {}, c);
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        for (std::int64_t i = 0; i < outputs[o].count(); ++i)
          ASSERT_EQ(outputs[o].get(i), expected[o].get(i)) << "value " << i << ", turn " << turn;
      }
    }
  }
}

/// A CPU's, of 1024 elements a tile.
PlanChoice ahead_on_cpu(int depth, int stages, int near) {
  return {.strategy = Strategy::look_ahead,
          .warps = 1,
          .depth = depth,
          .stages = stages,
          .window = near,
          .occupancy = 1,
          .tile = 1,
          .mma = false};
}

TEST(LookAheadOnCpu, ServesEveryProgram) {
  std::size_t turn = 0, served = 0;
  for (const TestProgram& tested : scan_programs()) {
    const codegen::Target target = codegen::cpu_target(1 + static_cast<int>(turn % 4));
    const std::int64_t segment = turn % 2 == 0 ? 0 : 2500;
    InterpCase c{.segment = segment,
                 .elements = segment > 0 ? 3 * segment : 3000 + static_cast<std::int64_t>(turn),
                 .fill = tested.fills[turn % tested.fills.size()],
                 .seed = turn,
                 .base_alignment = 1,
                 .in_place = turn % 3 != 0,
                 .choice = ahead_on_cpu(1 + static_cast<int>(turn % 8),
                                        2 + static_cast<int>(turn % 3), static_cast<int>(turn % 3)),
                 .options = options_of(turn)};
    ++turn;
    if (!make_plan(tested.over(segment > 0 ? segments(segment) : whole()).graph(), target,
                   {.segment = segment, .base_alignment = 1}, *c.choice))
      continue;
    ++served;
    expect_right(tested, target, c);
  }
  EXPECT_GE(served, scan_programs().size() * 2 / 3);
}

TEST(LookAheadOnCpu, TilesMayEndAnywhereAndScansGoOn) {
  std::size_t turn = 0;
  for (const std::int64_t elements : {0, 1, 1023, 1024, 1025, 9 * 1024 - 5}) {
    expect_right(program(turn % 2 == 0 ? "scan_sum_f32" : "scan_back_out_f16"),
                 codegen::cpu_target(3),
                 {.elements = elements,
                  .base_alignment = 1,
                  .in_place = turn % 2 == 1,
                  .choice = ahead_on_cpu(2, 2, 1),
                  .options = options_of(turn)});
    ++turn;
  }
  expect_right(program("scan_sum_i32"), codegen::cpu_target(2),
               {.elements = 7000, .chunks = 3, .choice = ahead_on_cpu(4, 2, 1)});
}

/// Where outputs pass the caches by, blocks help those that are late, to the bit: more than 32
/// tiles, of which those in near groups are looked at one by one.
TEST(LookAheadOnCpu, HasTheBitsOfLookBackUnderEveryScheduleAndHelps) {
  constexpr std::int64_t kElements = 70 * 1024 - 32;
  for (const char* name : {"scan_sum_f16", "scan_back_out_f32"}) {
    SCOPED_TRACE(name);
    const Computation computation = program(name).over(whole());
    const codegen::Graph& graph = computation.graph();
    codegen::Target target = codegen::cpu_target(3);
    target.non_temporal_bytes = 64;
    const auto inputs = make_inputs(graph, kElements, Fill::normal, 3);
    auto compiled = [&](const PlanChoice& choice) {
      return codegen::compile_plan(graph, target,
                                   make_plan(graph, target, {.base_alignment = 1}, choice).value());
    };
    PlanChoice back = ahead_on_cpu(8, 2, 0);
    back.strategy = Strategy::look_back;
    back.stages = back.occupancy = 0;
    InterpCase c{.elements = kElements, .base_alignment = 1};
    const auto expected = interpret_graph(graph, compiled(back), inputs, {}, c);
    std::size_t turn = 0;
    for (const int near : {0, 1, 2}) {
      PlanChoice choice = ahead_on_cpu(8, 2, near);
      for (const bool stays : {true, false}) {
        const codegen::Compiled waiting = compiled(stays ? choice : [&] {
          PlanChoice other = back;
          other.window = near;
          return other;
        }());
        EXPECT_NE(print(waiting.program).find(", helps"), std::string::npos);
        c.options = options_of(5 * turn++ + 2);  // at random, several at once or one alone
        const auto outputs = interpret_graph(graph, waiting, inputs, {}, c);
        for (std::int64_t i = 0; i < outputs[0].count(); ++i)
          ASSERT_EQ(outputs[0].get(i), expected[0].get(i)) << "value " << i << ", near " << near;
      }
    }
  }
}

/// An output of bytes, which never pass the caches by, may lie in the input's memory while another
/// one streams: nobody reads a tile there that somebody else may be storing.
TEST(LookAheadOnCpu, NobodyHelpsWhereSomethingIsInPlace) {
  constexpr std::int64_t kElements = 9 * 1024;
  const auto x = input<std::int8_t>("x");
  const Computation computation =
      over(whole(), inclusive_sum(cast<float>(x)), cast<std::int8_t>(inclusive(max(x))));
  const codegen::Graph& graph = computation.graph();
  codegen::Target target = codegen::cpu_target(3);
  target.non_temporal_bytes = 64;
  const auto inputs = make_inputs(graph, kElements, Fill::uniform, 3);
  for (const Strategy strategy : {Strategy::look_ahead, Strategy::look_back}) {
    PlanChoice choice = ahead_on_cpu(8, 2, 1);
    choice.strategy = strategy;
    if (strategy == Strategy::look_back) choice.stages = choice.occupancy = 0;
    const codegen::Compiled compiled = codegen::compile_plan(
        graph, target, make_plan(graph, target, {.base_alignment = 1}, choice).value());
    for (std::size_t turn = 0; turn < 60; ++turn) {
      InterpCase c{.elements = kElements, .base_alignment = 1, .in_place = true};
      c.options = {.schedule = codegen::Schedule::random, .seed = turn, .resident_blocks = 3};
      const auto outputs = interpret_graph(graph, compiled, inputs, {}, c);
      std::int8_t largest = std::numeric_limits<std::int8_t>::min();
      for (std::int64_t i = 0; i < kElements; ++i) {
        largest = std::max(largest, static_cast<std::int8_t>(inputs[0].get(i)));
        ASSERT_EQ(static_cast<std::int8_t>(outputs[1].get(i)), largest) << i << ", turn " << turn;
      }
    }
  }
}

TEST(LookAheadOnCpu, IsLegalForRangesInOneDirection) {
  const codegen::Target target = codegen::cpu_target(2);
  auto legal = [&](const char* name, const char* text) {
    return make_plan(program(name).over(whole()).graph(), target, {}, codegen::parse_choice(text))
        .has_value();
  };
  const std::string text =
      "look_ahead warps=1 depth=8 near=1 tile=4 stages=2 blocks=1 bytes=0 simt";
  EXPECT_EQ(to_text(codegen::parse_choice(text)), text);
  EXPECT_TRUE(legal("scan_sum_f32", text.c_str()));
  EXPECT_FALSE(legal("scan_both_ways_i32", text.c_str()));
  EXPECT_FALSE(legal("scan_share_f32", text.c_str()));
  EXPECT_FALSE(legal("scan_sum_f32", "look_ahead warps=1 depth=8 stages=2 blocks=1 bytes=0 simt"))
      << "rows in registers";
  EXPECT_FALSE(
      legal("scan_sum_f32", "look_ahead warps=1 depth=8 near=32 tile=4 stages=2 blocks=1 simt"));
  const Computation computation = program("scan_sum_f32").over(whole());
  const codegen::Graph& graph = computation.graph();
  bool offered = false;
  for (const PlanChoice& each : plan_space(graph, target, {}))
    offered = offered || (each.strategy == Strategy::look_ahead && each.tile > 0);
  EXPECT_TRUE(offered);
}

TEST(LookAhead, IsLegalWhereCopiesAreAndItsTilesFit) {
  const Computation computation = program("scan_sum_f32").over(whole());
  auto legal = [&](const codegen::Target& target, const PlanChoice& choice) {
    return make_plan(computation.graph(), target, {}, choice).has_value();
  };
  EXPECT_TRUE(legal(codegen::gpu_target(90), ahead(8, 4, 4, 16)));
  EXPECT_TRUE(legal(codegen::gpu_target(80), ahead(8, 4, 4, 16)));
  EXPECT_FALSE(legal(codegen::gpu_target(75), ahead(8, 4, 4, 16)));
  EXPECT_FALSE(legal(codegen::cpu_target(2), ahead(1, 1, 4, 16)));
  EXPECT_FALSE(legal(codegen::gpu_target(90), ahead(8, 4, 1, 16)));
  EXPECT_FALSE(legal(codegen::gpu_target(90), ahead(16, 8, 8, 16))) << "512 KiB";
  const PlanChoice choice =
      codegen::parse_choice("look_ahead warps=8 depth=4 stages=4 blocks=2 bytes=16 simt");
  EXPECT_EQ(to_text(choice), "look_ahead warps=8 depth=4 stages=4 blocks=2 bytes=16 simt");
  auto offered = [&](int arch) {
    const codegen::Target target = codegen::gpu_target(arch);
    for (const PlanChoice& each : plan_space(computation.graph(), target, {})) {
      if (each.strategy == Strategy::look_ahead) return true;
    }
    return false;
  };
  EXPECT_TRUE(offered(90));
  EXPECT_FALSE(offered(80)) << "lanes make its copies";
}

}  // namespace
}  // namespace chainfold::test
