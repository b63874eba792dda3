// Variances of data whose mean is large beside its deviations: a formula that subtracts squares of
// sums would lose every digit, whatever way a segment takes through lanes, turns and launches.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

struct Case {
  const char* program;
  double mean;       ///< of the elements, about
  double tolerance;  ///< relative
};

class Moments : public testing::TestWithParam<Case> {
 protected:
  /// Variances of `count` segments or columns of `size` elements each against those in f64; the
  /// elements lie about the case's mean, multiples of `step` away.
  static void check(const codegen::Graph& graph, const codegen::Target& target,
                    const codegen::Plan& plan, InterpCase what, std::int64_t count,
                    std::int64_t size, double step, double tolerance = GetParam().tolerance) {
    const Case& c = GetParam();
    what.elements = count * size;
    std::vector<Column> inputs;
    inputs.emplace_back(graph.inputs[0].type, what.elements);
    Column& x = inputs[0];
    std::mt19937 random(7);
    for (std::int64_t i = 0; i < x.count(); ++i)
      x.set_double(i, c.mean + static_cast<int>(random() % 17) * step - 8 * step);
    const auto result =
        interpret_graph(graph, codegen::compile_plan(graph, target, plan), inputs, {}, what);
    for (std::int64_t s = 0; s < count; ++s) {
      const auto at = [&](std::int64_t i) {  // relative to the mean, and so exact
        const auto bits = x.get(what.columns ? i * count + s : s * size + i);
        return codegen::double_of_bits(x.type(), bits) - c.mean;
      };
      long double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < size; ++i) mean += at(i);
      mean /= static_cast<long double>(size);
      for (std::int64_t i = 0; i < size; ++i) squares += (at(i) - mean) * (at(i) - mean);
      const auto expected = static_cast<double>(squares / static_cast<long double>(size));
      // A mean that is rounded moves deviations; steps of a power of two have means that are not.
      const double rounding = result[0].type() == DType::f64 ? 0x1p-53 : 0x1p-24;
      const double moved = step == 0.25 ? 0 : 2 * rounding * c.mean * std::sqrt(expected);
      EXPECT_NEAR(codegen::double_of_bits(result[0].type(), result[0].get(s)), expected,
                  tolerance * expected + moved)
          << (what.columns ? "column " : "segment ") << s;
    }
  }
};

TEST_P(Moments, SurviveALargeMean) {
  const Case& c = GetParam();
  struct Shape {
    std::int64_t segment;
    const char* plan;
    int base_alignment = 16;
  };
  const Shape shapes[] = {
      {64, ""},
      {1000, ""},
      {4096, ""},
      {77, "staged warps=2 lanes=8 rows=1 stages=2 burst=2 blocks=1 bytes=16 simt"},
      {100, "staged warps=2 lanes=32 rows=2 stages=2 burst=2 blocks=1 bytes=16 simt"},
      {1000, "staged warps=2 lanes=32 rows=1 stages=2 burst=2 blocks=1 bytes=16 simt"},
      {37, "staged warps=2 lanes=1 rows=1 stages=2 burst=2 blocks=1 bytes=16 simt", 8},
      {1000, "rows warps=2 depth=2 rows=1 bytes=16 simt"},
      {40, "rows warps=2 depth=4 rows=2 bytes=4 simt"},
      {9001, "parts warps=2 depth=2 parts=3 bytes=16 simt"},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(fmt::format("segment {}, {}", shape.segment, shape.plan));
    const Computation computation = program(c.program).over(segments(shape.segment));
    const codegen::Graph& graph = computation.graph();
    const InterpCase what{.segment = shape.segment, .base_alignment = shape.base_alignment};
    const codegen::PlanRequest request{.segment = shape.segment,
                                       .base_alignment = shape.base_alignment};
    const codegen::Target target = codegen::gpu_target(90, 2);
    const codegen::PlanChoice choice = *shape.plan == '\0'
                                           ? codegen::default_choice(graph, target, request)
                                           : codegen::parse_choice(shape.plan);
    const auto plan = codegen::make_plan(graph, target, request, choice);
    if (!plan) continue;  // one element a load: too many of them for one lane
    check(graph, target, *plan, what, 3, shape.segment, 0.25);
  }
}

/// Rows of a CPU take elements relative to the first one: what the mean is does not matter. Those
/// of f16 do without. One load, several, and loops of batches with a rest.
TEST_P(Moments, OfRowsOnACpuDoNotKnowTheMean) {
  const Case& c = GetParam();
  const DType type = program(c.program).over(segments(8)).graph().inputs[0].type;
  const double unit = type == DType::f64 ? 0x1p-53 : 0x1p-24;
  const double tolerance = unit * (type == DType::f16 ? c.mean : 64);
  const codegen::Target target = codegen::cpu_target(2);
  for (const std::int64_t segment : {1, 2, 8, 24, 32, 37, 64, 100, 256, 1000, 2048, 4096, 5000}) {
    SCOPED_TRACE(segment);
    const Computation computation = program(c.program).over(segments(segment));
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    const codegen::Plan plan = codegen::choose_plan(graph, target, {.segment = segment});
    ASSERT_EQ(plan.strategy, codegen::Strategy::rows);
    ASSERT_GT(plan.mean_loads, 0);
    check(graph, target, plan, {.segment = segment}, 67, segment, 0.25, tolerance);
  }
}

/// Of columns, by batches of rows: 64 side by side, in phases, and few; by steps whose sums a batch
/// has to round where the type can tell them.
TEST_P(Moments, OfColumnsSurviveALargeMean) {
  const Case& c = GetParam();
  for (const std::int64_t count : {64, 517, 5}) {
    for (const char* name : {"sm_90", "cpu"}) {
      SCOPED_TRACE(fmt::format("{} columns on {}", count, name));
      const Computation computation = program(c.program).over(columns(count));
      const codegen::Graph& graph = computation.graph();
      const codegen::Target target =
          *name == 'c' ? codegen::cpu_target(2) : codegen::gpu_target(90, 2);
      const codegen::Plan plan = codegen::choose_plan(graph, target, {.segment = count});
      if (count == 517 && !target.is_cpu()) {
        ASSERT_GT(plan.columns.phases, 1);
      }
      const double step = is_float(graph.inputs[0].type) ? 0.3 : 1;
      check(graph, target, plan, {.segment = count, .columns = true}, count, 203, step);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Moments,
                         testing::Values(Case{"variance_f16", 500, 1e-6},
                                         Case{"variance_i16", 30000, 1e-4},
                                         Case{"variance_f32", 100000, 1e-3},
                                         Case{"variance_f64", 1e10, 1e-6}),
                         [](const auto& info) { return std::string(info.param.program); });

}  // namespace
}  // namespace chainfold::test
