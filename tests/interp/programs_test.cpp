// Every test program on every kind of target, run by the interpreter and held against the
// reference.
//
// The whole cross product of programs, segment sizes, counts, data and schedules would take an
// hour. Each program sees every segment size on one target or another and each target every size
// for the plain folds; data, schedule, alignment and pieces rotate with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

using codegen::Schedule;

constexpr std::int64_t kSegments[] = {1,  2,  7,   8,   16,  24,  31,   32,
                                      33, 64, 100, 255, 256, 257, 1000, 4096};
constexpr const char* kTargets[] = {"sm_75", "sm_80", "sm_90", "cpu"};
constexpr int kAlignments[] = {16, 16, 8, 4, 2};
constexpr Schedule kSchedules[] = {Schedule::in_order, Schedule::reversed, Schedule::random};

/// Of ordinary numbers every value must have been checked.
void expect_all_right(const TestProgram& program, const codegen::Target& target,
                      const InterpCase& c) {
  const Verdict verdict = expect_right(program, target, c);
  if (c.fill == Fill::extremes || c.fill == Fill::nonfinite) return;
  EXPECT_EQ(verdict.unchecked, 0) << words(program, target, c);
}

/// Rotates through data, schedules, alignments and pieces.
void vary(InterpCase& c, const TestProgram& program, std::size_t turn) {
  c.fill = program.fills[turn % program.fills.size()];
  c.seed = turn + 1;
  c.base_alignment = kAlignments[turn % std::size(kAlignments)];
  c.options.schedule = kSchedules[turn % std::size(kSchedules)];
  c.options.seed = turn;
  c.options.resident_blocks = turn % 4 == 1 ? 1 : 3;
  c.chunks = turn % 3 == 2 ? 3 : 1;
}

using ProgramOnTarget = std::tuple<std::size_t, std::size_t>;
class Programs : public testing::TestWithParam<ProgramOnTarget> {
 protected:
  [[nodiscard]] const TestProgram& tested() const { return programs()[std::get<0>(GetParam())]; }
  [[nodiscard]] codegen::Target target() const {
    return codegen::parse_target(kTargets[std::get<1>(GetParam())]);
  }
  /// A different number for each program and target.
  [[nodiscard]] std::size_t turn() const {
    return std::get<0>(GetParam()) * 7 + std::get<1>(GetParam()) * 5;
  }
  /// Plain sums go through all shapes, others through some.
  [[nodiscard]] std::size_t step() const { return is_plain() ? kThin : 3 * kThin; }
  [[nodiscard]] bool is_plain() const { return tested().name.rfind("sum_", 0) == 0; }
};

TEST_P(Programs, Segments) {
  std::size_t turn = this->turn();
  for (std::size_t s = 0; s < std::size(kSegments); ++s) {
    if ((s + turn) % step() != 0) continue;
    const std::int64_t segment = kSegments[s];
    // None, one, an odd number that leaves a warp partly empty, and more than a block.
    const std::int64_t counts[] = {1, segment > 500 ? 3 : 37, segment > 64 ? 5 : 0,
                                   segment < 4 ? 2100 : 3};
    const std::size_t most = is_plain() && segment < 500 ? std::size(counts) : 2;
    for (std::size_t i = 0; i < most; ++i) {
      InterpCase c{.segment = segment, .elements = counts[(i + turn) % 4] * segment};
      vary(c, tested(), turn + i + s);
      expect_all_right(tested(), target(), c);
    }
  }
}

TEST_P(Programs, Whole) {
  const std::size_t turn = this->turn();
  const std::int64_t lengths[] = {0, 1, 31, 257, 1000, 4097, 20001};
  for (std::size_t i = 0; i < std::size(lengths); ++i) {
    if ((i + turn) % step() != 0) continue;
    InterpCase c{.segment = 0, .elements = lengths[i]};
    vary(c, tested(), turn + i);
    expect_all_right(tested(), target(), c);
  }
}

std::string name_of_case(const testing::TestParamInfo<ProgramOnTarget>& info) {
  return fmt::format("{}_on_{}", programs()[std::get<0>(info.param)].name,
                     kTargets[std::get<1>(info.param)]);
}

INSTANTIATE_TEST_SUITE_P(All, Programs,
                         testing::Combine(testing::Range(std::size_t{0}, programs().size()),
                                          testing::Range(std::size_t{0}, std::size(kTargets))),
                         name_of_case);

/// Segments long enough for several blocks each: parts, cut anywhere.
TEST(LongSegments, ArePartsThatMayComePieceByPiece) {
  std::size_t turn = 0;
  for (const char* target : kTargets) {
    for (const char* name : {"sum_f16", "frames", "q6", "variance_f32", "sum_i8", "dot_f64"}) {
      const TestProgram& tested = program(name);
      const std::int64_t segment = 131072 + (name[0] == 's' ? 8 : 7);
      for (int chunks : {1, 4}) {
        if (turn++ % kThin != 0) continue;
        InterpCase c{.segment = segment, .elements = 2 * segment, .fill = tested.fills[0]};
        c.chunks = chunks;
        c.options.schedule = Schedule::random;
        expect_all_right(tested, codegen::parse_target(target), c);
      }
    }
  }
}

/// Only the extent: no input, no fold.
TEST(NoInput, CountsElements) {
  for (const char* target : kTargets) {
    for (std::int64_t segment : {0, 1, 7, 200000}) {
      const TestProgram counting{.name = "count", .over = [](const dsl::Partition& p) {
                                   return over(p, count(), count() * 2);
                                 }};
      expect_all_right(counting, codegen::parse_target(target),
                       {.segment = segment, .elements = 3 * segment});
    }
  }
}

/// A promise of finite data drops the guard: then a NaN does spread to the segments of its quad,
/// which shows that the tests below would see it.
TEST(Containment, NeedsItsGuard) {
  const TestProgram& tested = program("sum_f16");
  const Computation computation = tested.over(segments(8));
  const codegen::Graph& graph = computation.graph();
  InterpCase c{.segment = 8, .elements = 8 * 512};
  std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::uniform, 5);
  inputs[0].set_double(3, std::nan(""));
  for (NonFinite policy : {NonFinite::ieee, NonFinite::assume_finite}) {
    const codegen::Compiled compiled =
        codegen::compile_graph(graph, codegen::gpu_target(90), {.nonfinite = policy, .segment = 8});
    const std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, c);
    int spoiled = 0;
    for (std::int64_t s = 0; s < outputs[0].count(); ++s) {
      spoiled += std::isnan(codegen::double_of_bits(DType::f32, outputs[0].get(s)));
    }
    EXPECT_EQ(spoiled, policy == NonFinite::ieee ? 1 : 4);
  }
}

/// The result must not depend on how many blocks are at hand or which runs first.
TEST(Schedules, DoNotChangeTheBits) {
  for (const char* target : kTargets) {
    for (const char* name : {"sum_f32", "frames", "variance_f16"}) {
      for (std::int64_t segment : {std::int64_t{0}, std::int64_t{33}, std::int64_t{4096}}) {
        const TestProgram& tested = program(name);
        const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
        const codegen::Compiled compiled = codegen::compile_graph(
            computation.graph(), codegen::parse_target(target), {.segment = segment});
        InterpCase c{.segment = segment, .elements = segment > 0 ? 9 * segment : 30001};
        const auto inputs = make_inputs(computation.graph(), c.elements, Fill::normal, 3);
        std::vector<Column> first;
        for (Schedule schedule : kSchedules) {
          for (int resident : {1, 4}) {
            c.options = {.schedule = schedule, .seed = 11, .resident_blocks = resident};
            auto outputs = interpret_graph(computation.graph(), compiled, inputs, {}, c);
            if (first.empty()) first = std::move(outputs);
            for (std::size_t o = 0; o < outputs.size(); ++o) {
              for (std::int64_t i = 0; i < outputs[o].count(); ++i) {
                ASSERT_EQ(outputs[o].get(i), first[o].get(i))
                    << words(tested, codegen::parse_target(target), c);
              }
            }
          }
        }
      }
    }
  }
}

/// One element that is not finite, in each position of a segment in turn, must change its own
/// segment and no other.
class BadElements : public testing::TestWithParam<std::tuple<const char*, const char*, int>> {};

TEST_P(BadElements, SpoilTheirOwnSegmentOnly) {
  const auto [name, target_name, segment_size] = GetParam();
  const std::int64_t segment = segment_size;
  const TestProgram& tested = program(name);
  const Computation computation = tested.over(segments(segment));
  const codegen::Graph& graph = computation.graph();
  const codegen::Compiled compiled =
      codegen::compile_graph(graph, codegen::parse_target(target_name), {.segment = segment});
  const std::int64_t count = 2 * std::max<std::int64_t>(4, compiled.plan.segments_per_warp());
  InterpCase c{.segment = segment, .elements = count * segment};
  std::vector<Column> inputs = make_inputs(graph, c.elements, Fill::uniform, 5);
  const std::vector<Column> clean = interpret_graph(graph, compiled, inputs, {}, c);
  const double bad[] = {std::nan(""), HUGE_VAL, -HUGE_VAL};
  // Segments that share a quad of lanes also share a column of the data: what NaN hides from the
  // matrix instruction there is summed again, and may round differently.
  const int lanes = compiled.plan.lanes_per_segment;
  const std::int64_t together = lanes < 4 ? 4 / lanes : 1;
  // All positions of the first segments, then some of the rest.
  const std::int64_t step = std::max<std::int64_t>(1, c.elements / 96) | 1;
  constexpr auto kThinStep = static_cast<std::int64_t>(kThin);
  for (std::int64_t at = 0; at < c.elements;
       at += at < 4 * segment && segment <= 24 ? kThinStep : kThinStep * step) {
    Column& x = inputs[0];
    const Bits before = x.get(at);
    x.set_double(at, bad[at / kThinStep % 3]);
    const std::vector<Column> spoiled = interpret_graph(graph, compiled, inputs, {}, c);
    const Verdict verdict = judge(
        reference(graph, inputs, c.elements, {.segment = segment, .plan = compiled.plan}), spoiled);
    ASSERT_EQ(verdict.problems, "") << "element " << at;
    x.set(at, before);
    for (std::size_t o = 0; o < clean.size(); ++o) {
      const DType type = clean[o].type();
      for (std::int64_t s = 0; s < count; ++s) {
        if (s / together == at / segment / together && s != at / segment) continue;
        if (s == at / segment) {
          const double value = codegen::double_of_bits(type, spoiled[o].get(s));
          EXPECT_FALSE(std::isfinite(value)) << "element " << at << ", output " << o;
        } else {
          ASSERT_EQ(codegen::text_of_bits(type, spoiled[o].get(s)),
                    codegen::text_of_bits(type, clean[o].get(s)))
              << "element " << at << " changed segment " << s << " of output " << o;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(F16, BadElements,
                         testing::Combine(testing::Values("sum_f16", "frames"),
                                          testing::Values("sm_75", "sm_80", "sm_90", "cpu"),
                                          testing::Values(8, 16, 24, 64)),
                         [](const auto& info) {
                           return fmt::format("{}_on_{}_S{}", std::get<0>(info.param),
                                              std::get<1>(info.param), std::get<2>(info.param));
                         });

}  // namespace
}  // namespace chainfold::test
