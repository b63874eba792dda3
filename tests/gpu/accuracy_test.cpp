// How far sums on the GPU are from the exact ones on the data that hurts most, and how far a value
// that is not finite reaches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

class GpuAccuracy : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// A large value in each segment, at another place in each, among small ones whose low bits a
/// truncating accumulator loses.
Column one_large_value(DType type, std::int64_t count, std::int64_t segment, int sign) {
  Column column(type, count);
  // The longest fraction of the type, 2^-10 (1 - 2^-11) in f16.
  const int digits = type == DType::bf16  ? 8
                     : type == DType::f16 ? 11
                     : type == DType::f32 ? 24
                                          : 53;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t s = i / segment;
    const bool large = i % segment == s * 7 % segment;
    column.set_double(i, large ? 32768 : sign * std::ldexp(1 - std::ldexp(1, -digits), -10));
  }
  return column;
}

TEST_F(GpuAccuracy, OneLargeValueAmongSmallOnes) {
  fmt::print("largest error of sums in u of the sum of absolute values (the plan's bound):\n");
  for (const char* name : {"sum_f16", "sum_bf16", "sum_f32", "sum_f64"}) {
    const TestProgram& tested = program(name);
    for (const std::int64_t segment :
         {std::int64_t{8}, std::int64_t{16}, std::int64_t{24}, std::int64_t{64}, std::int64_t{256},
          std::int64_t{1000}, std::int64_t{4096}, std::int64_t{65536}, std::int64_t{0}}) {
      const std::int64_t length = segment > 0 ? segment : 1 << 20;
      const std::int64_t elements =
          segment > 0 ? length * std::max<std::int64_t>(2, 16384 / length) : length;
      const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
      const codegen::Graph& graph = computation.graph();
      double worst = 0;
      for (const int sign : {1, -1}) {
        std::vector<Column> inputs;
        inputs.push_back(one_large_value(graph.inputs[0].type, elements, length, sign));
        const Verdict verdict =
            check_on_device(computation, {}, inputs, {.segment = segment, .elements = elements});
        EXPECT_EQ(verdict.problems, "") << name << " S=" << segment;
        EXPECT_EQ(verdict.unchecked, 0);
        worst = std::max(worst, verdict.worst_u);
      }
      const codegen::Plan plan = codegen::choose_plan(graph, target("gpu"), {.segment = segment});
      EXPECT_LE(worst, plan.folds[0].error_bound_u);
      fmt::print("  {} S={}: {:.3g} ({:.3g}, {})\n", name,
                 segment > 0 ? std::to_string(segment) : "whole", worst,
                 plan.folds[0].error_bound_u,
                 plan.folds[0].unit == codegen::Unit::simt ? "simt" : "mma");
    }
  }
  std::fflush(stdout);
}

TEST_F(GpuAccuracy, OrdinaryDataStaysNearTheExactSum) {
  for (const char* name : {"sum_f16", "sum_bf16", "sum_f32"}) {
    for (const Fill fill : {Fill::uniform, Fill::normal}) {
      for (const std::int64_t segment :
           {std::int64_t{16}, std::int64_t{256}, std::int64_t{4096}, std::int64_t{0}}) {
        const std::int64_t elements = 1 << 18;
        const Verdict verdict = check_on_device(
            program(name), {.segment = segment, .elements = elements, .fill = fill, .seed = 9});
        EXPECT_EQ(verdict.problems, "") << name << " S=" << segment;
        EXPECT_LE(verdict.worst_u, 2.0)
            << name << " of " << name_of(fill) << " data, S=" << segment;
        fmt::print("  {} of {} data, S={}: {:.3g} u\n", name, name_of(fill), segment,
                   verdict.worst_u);
      }
    }
  }
  std::fflush(stdout);
}

using Containment = std::pair<std::string, std::int64_t>;  // program, segment size
class GpuContainment : public testing::TestWithParam<Containment> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// One launch tries every position: copy k of a block of segments has the bad element at k. The
/// copies are whole tiles, so each position of a tile is met.
TEST_P(GpuContainment, ABadElementSpoilsItsOwnSegmentOnly) {
  const auto [name, segment] = GetParam();
  const Computation computation = program(name).over(segments(segment));
  const codegen::Graph& graph = computation.graph();
  Options options;
  options.target = target("gpu");
  const Kernel kernel = compile(computation, options);
  const codegen::Plan plan = plan_on_device(kernel, graph, segment, /*elements=*/0);
  const std::int64_t tile = plan.segments_per_warp() * segment;
  const std::int64_t elements = tile * tile, count = elements / segment;
  const DType type = graph.inputs[0].type;
  // Whole numbers: sums are exact, so other segments must keep every bit on whatever path.
  std::vector<Column> inputs;
  inputs.push_back(make_column(type, elements, Fill::whole, 3));
  DeviceLaunch clean_launch(kernel, graph, inputs, {}, elements, count);
  kernel.launch(clean_launch.args());
  std::string problems;
  const std::vector<Column> clean = clean_launch.results(problems);
  for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    std::vector<Bits> before;
    for (std::int64_t k = 0; k < tile; ++k) {
      before.push_back(inputs[0].get(k * tile + k));
      inputs[0].set_double(k * tile + k, bad);
    }
    DeviceLaunch launch(kernel, graph, inputs, {}, elements, count);
    kernel.launch(launch.args());
    const std::vector<Column> spoiled = launch.results(problems);
    int shown = 0;
    for (std::size_t o = 0; o < clean.size(); ++o) {
      for (std::int64_t s = 0; s < count && shown < 5; ++s) {
        const std::int64_t k = s * segment / tile;
        const bool hit = (k * tile + k) / segment == s;
        const DType out = clean[o].type();
        const double value = codegen::double_of_bits(out, spoiled[o].get(s));
        bool right = spoiled[o].get(s) == clean[o].get(s);
        if (hit) {
          const double mean_square = name == "frames" && o == 1 ? std::fabs(bad) : bad;
          right = std::isnan(bad) ? std::isnan(value) : value == mean_square;
        }
        if (right) continue;
        ++shown;
        ADD_FAILURE() << fmt::format(
            "{} at position {} of its tile: segment {} of output {} ({}) is {} instead of {}", bad,
            k, s, o, hit ? "its own" : "another", value,
            codegen::text_of_bits(out, clean[o].get(s)));
      }
    }
    for (std::int64_t k = 0; k < tile; ++k)
      inputs[0].set(k * tile + k, before[static_cast<std::size_t>(k)]);
  }
  EXPECT_EQ(problems, "");
}

const Containment kContained[] = {
    {"sum_f16", 8},   {"sum_f16", 16},  {"sum_f16", 24},  {"sum_f16", 64}, {"sum_bf16", 8},
    {"sum_bf16", 16}, {"sum_bf16", 24}, {"sum_bf16", 64}, {"frames", 8},   {"frames", 64}};
INSTANTIATE_TEST_SUITE_P(All, GpuContainment, testing::ValuesIn(kContained), [](const auto& test) {
  return fmt::format("{}_S{}", test.param.first, test.param.second);
});

/// Segments that share a tile with NaN keep to the bound even where the tile is done again.
TEST_F(GpuAccuracy, SegmentsBesideANanStayWithinTheBound) {
  for (const char* name : {"sum_f16", "sum_bf16", "frames"}) {
    for (const std::int64_t segment : {8, 16, 24, 64}) {
      const Verdict verdict = check_on_device(
          program(name), {.segment = segment, .elements = segment * 3001, .fill = Fill::nonfinite});
      EXPECT_EQ(verdict.problems, "") << name << " S=" << segment;
    }
  }
}

}  // namespace
}  // namespace chainfold::test
