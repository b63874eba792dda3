// look_back whose whole runs are in a blocked arrangement: every scan that it serves, forward and
// backward, of the whole input and of segments, with kept rows and without, in place, carried from
// launch to launch, and under every order of blocks; and what it does not serve.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/monoids.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::PlanChoice;
using codegen::Strategy;

PlanChoice choice_of(int warps, int kept, int staged) {
  return {.strategy = Strategy::look_back,
          .warps = warps,
          .depth = kept + staged,
          .staged = staged,
          .blocked = 1,
          .bytes = 16,
          .mma = false};
}

/// Scans of an input whose one output of elements has its type: of plain values, of compensated and
/// of wide states, of folds whose order shows, with positions, filters, and folds beside them.
std::vector<TestProgram> programs_as_wide() {
  using P = dsl::Partition;
  std::vector<TestProgram> list;
  const auto add = [&](const char* name, std::function<Computation(const P&)> scans,
                       std::vector<Fill> fills = {Fill::uniform, Fill::nonfinite}) {
    list.push_back({.name = name, .over = std::move(scans), .fills = std::move(fills)});
  };
  const std::vector<Fill> integers = {Fill::uniform};
  add("to_f16",
      [](const P& p) { return over(p, cast<f16>(inclusive_sum(cast<float>(input<f16>("x"))))); });
  add("back_to_bf16", [](const P& p) {
    return over(p, cast<bf16>(exclusive_sum(cast<float>(input<bf16>("x")), backward)));
  });
  add("filtered_f16", [](const P& p) {
    auto x = input<f16>("x");
    return over(p, cast<f16>(inclusive_sum(cast<float>(x), where(x > 0.25F))), sum(x));
  });
  add("both_max_f32", [](const P& p) {
    auto x = input<float>("x");
    return over(p, inclusive(max(x)) - exclusive_sum(x), max(x));
  });
  add("back_variance_f32",
      [](const P& p) { return over(p, inclusive(variance(input<float>("x")), backward)); },
      {Fill::uniform});
  add("exclusive_f64", [](const P& p) { return over(p, exclusive_sum(input<double>("x"))); });
  add(
      "of_places_i32",
      [](const P& p) {
        return over(p, cast<std::int32_t>(
                           inclusive_sum(input<std::int32_t>("x") * cast<std::int32_t>(index()))));
      },
      integers);
  add(
      "product_u8",
      [](const P& p) {
        return over(p, cast<std::uint8_t>(exclusive(product(input<std::uint8_t>("x") | 1))));
      },
      integers);
  add(
      "continuant_u32",
      [](const P& p) { return over(p, inclusive(fold(continuant(), input<std::uint32_t>("x")))); },
      integers);
  add(
      "continuant_back_u32",
      [](const P& p) {
        return over(p, exclusive(fold(continuant(), input<std::uint32_t>("x")), backward));
      },
      integers);
  add(
      "brackets_i64",
      [](const P& p) {
        auto x = input<std::int64_t>("x");
        return over(p, inclusive(fold(brackets(), x > 3, where(x != 5))));
      },
      integers);
  return list;
}

bool carries_on(const std::string& name) {
  return name.starts_with("scan_sum") || name.starts_with("to") || name.starts_with("continuant");
}

TEST(BlockedScan, IsRightForAllThatItServes) {
  std::mt19937 random(2);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  std::set<std::string> served;
  std::size_t turn = 0;
  std::vector<TestProgram> all_programs = programs_as_wide();
  const std::size_t as_wide = all_programs.size();
  all_programs.insert(all_programs.end(), scan_programs().begin(), scan_programs().end());
  for (const TestProgram& tested : all_programs) {
    for (int round = 0; round < 6; ++round, ++turn) {
      const bool all = round < 3;
      const int staged = 1 + below(3), kept = below(staged + 1), warps = 1 + below(2);
      PlanChoice choice = choice_of(warps, kept, staged);
      // Sums of f32 are pairs where f64 are slow.
      const codegen::Target target = codegen::gpu_target(below(3) == 0 ? 120 : 90);
      const int width = 16 / codegen::widest_of_scan(tested.over(whole()).graph());
      const std::int64_t tile = std::int64_t{32} * width * (kept + staged) * warps;
      // Of segments: whole tiles, or so many that the last one has code of its own.
      const std::int64_t segment = all          ? 0
                                   : round == 3 ? tile * (1 + below(3))
                                                : 33 * tile + width * (1 + below(31));
      if (!all && below(2) == 0) choice.interleaved = 2 + below(2);
      const Computation computation = all ? tested.over(whole()) : tested.over(segments(segment));
      if (!make_plan(computation.graph(), target, {.segment = segment}, choice)) continue;
      served.insert(tested.name);
      if (!is_taken(static_cast<std::int64_t>(turn))) continue;
      InterpCase c{
          .segment = segment,
          .elements =
              all ? below(4) * tile + below(static_cast<int>(tile) + 1) : segment * (1 + below(2)),
          .fill =
              tested.fills[static_cast<std::size_t>(below(static_cast<int>(tested.fills.size())))],
          .seed = turn,
          .chunks = all && carries_on(tested.name) && below(3) == 0 ? 2 : 1,
          .in_place = below(2) == 0,
          .choice = choice};
      c.options = options_of(turn);
      expect_right(tested, target, c);
    }
  }
  for (std::size_t i = 0; i < as_wide; ++i)
    EXPECT_TRUE(served.contains(all_programs[i].name)) << all_programs[i].name;
  EXPECT_GT(served.size(), as_wide);
}

TEST(BlockedScan, HasTheSameBitsUnderEverySchedule) {
  const Computation computation = program("scan_sum_f32").over(whole());
  expect_same_bits(computation.graph(), codegen::gpu_target(90), 0, 5 * 128 * 5 * 2 + 77, 6,
                   [](std::size_t) { return choice_of(2, 2, 3); });
}

TEST(BlockedScan, ServesWholeRunsOfOneInputAsWideAsItsOutput) {
  const auto plan = [](const char* name, std::int64_t segment, PlanChoice choice, int arch = 90,
                       int alignment = 16) {
    const Computation computation =
        segment > 0 ? program(name).over(segments(segment)) : program(name).over(whole());
    return make_plan(computation.graph(), codegen::gpu_target(arch),
                     {.segment = segment, .base_alignment = alignment}, choice);
  };
  const PlanChoice choice = choice_of(2, 1, 2);
  const std::int64_t tile = std::int64_t{32} * 4 * 3 * 2;
  EXPECT_TRUE(plan("scan_sum_f32", 0, choice));
  EXPECT_TRUE(plan("scan_sum_f32", 2 * tile, choice));
  EXPECT_FALSE(plan("scan_sum_f32", 2 * tile + 4, choice)) << "few tiles, all with masks";
  EXPECT_TRUE(plan("scan_sum_f32", 40 * tile + 4, choice));
  EXPECT_FALSE(plan("scan_sum_f32", 40 * tile + 2, choice)) << "narrower loads";
  EXPECT_FALSE(plan("scan_sum_f32", 0, choice, 80)) << "no copy engine";
  EXPECT_FALSE(plan("scan_sum_f32", 0, choice, 90, 4)) << "nothing lies on 16 bytes";
  EXPECT_FALSE(plan("scan_sum_f32", 0, choice_of(2, 3, 2))) << "no room for the kept rows";
  EXPECT_FALSE(plan("scan_widths", 0, choice)) << "several inputs";
  EXPECT_FALSE(plan("scan_share_f32", 0, choice)) << "what is told of all";
  EXPECT_FALSE(plan("scan_both_ways_i32", 0, choice));
  EXPECT_FALSE(plan("scan_sum_i8", 0, choice)) << "of other types";
  PlanChoice other = choice;
  other.heads = 1;
  EXPECT_FALSE(plan("scan_sum_f32", 40 * tile + 4, other));
  other = choice;
  other.staged = 0;
  EXPECT_FALSE(plan("scan_sum_f32", 0, other));
  other = choice;
  other.blocked = 2;
  EXPECT_FALSE(plan("scan_sum_f32", 0, other));
  const std::string text =
      "look_back warps=2 depth=3 staged=2 blocked=1 tile=0 blocks=0 bytes=16 simt";
  EXPECT_EQ(to_text(choice), text);
  EXPECT_EQ(codegen::parse_choice(text), choice);
}

}  // namespace
}  // namespace chainfold::test
