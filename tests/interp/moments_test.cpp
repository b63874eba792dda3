// Variances of data whose mean is large beside its deviations: a formula that subtracts squares of
// sums would lose every digit, whatever way a segment takes through lanes, turns and launches.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

struct Case {
  const char* program;
  double mean;       ///< the elements are `mean` and whole numbers from -2 to 2, in quarters
  double tolerance;  ///< relative
};

class Moments : public testing::TestWithParam<Case> {};

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
    InterpCase what{.segment = shape.segment,
                    .elements = 3 * shape.segment,
                    .base_alignment = shape.base_alignment};
    const codegen::PlanRequest request{.segment = shape.segment,
                                       .base_alignment = shape.base_alignment};
    const codegen::Target target = codegen::gpu_target(90, 2);
    const codegen::PlanChoice choice = *shape.plan == '\0'
                                           ? codegen::default_choice(graph, target, request)
                                           : codegen::parse_choice(shape.plan);
    const auto plan = codegen::make_plan(graph, target, request, choice);
    if (!plan) continue;  // one element a load: too many of them for one lane
    std::vector<Column> inputs;
    inputs.emplace_back(graph.inputs[0].type, what.elements);
    Column& x = inputs[0];
    std::mt19937 random(7);
    for (std::int64_t i = 0; i < x.count(); ++i)
      x.set_double(i, c.mean + static_cast<int>(random() % 17) / 4.0 - 2.0);
    const auto result =
        interpret_graph(graph, codegen::compile_plan(graph, target, *plan), inputs, {}, what);
    for (std::int64_t s = 0; s < 3; ++s) {
      const auto at = [&](std::int64_t i) {
        return codegen::double_of_bits(x.type(), x.get(s * shape.segment + i));
      };
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < shape.segment; ++i) mean += at(i);
      mean /= static_cast<double>(shape.segment);
      for (std::int64_t i = 0; i < shape.segment; ++i) squares += (at(i) - mean) * (at(i) - mean);
      const double expected = squares / static_cast<double>(shape.segment);
      EXPECT_NEAR(codegen::double_of_bits(result[0].type(), result[0].get(s)), expected,
                  c.tolerance * expected)
          << "segment " << s;
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
