// The published strategies on a GPU, through run() and through launch(), against the reference.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/on_device.hpp"
#include "chainfold/tests/support/published.hpp"
#include "chainfold/tests/support/ragged.hpp"

namespace chainfold::test {
namespace {

class GpuPublished : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

void check(const PublishedCase& row, const char* name, Determinism determinism) {
  const Computation computation =
      program(name).over(row.segment > 0 ? segments(row.segment) : whole());
  const codegen::Graph& graph = computation.graph();
  Options options;
  options.target = target("gpu");
  options.accuracy = row.loose ? Accuracy::as_published : Accuracy::accurate;
  options.determinism = determinism;
  options.plan = row.plan;
  const Kernel kernel = compile(computation, options);
  std::vector<std::int64_t> counts = row.counts;
  counts.push_back(row.segment > 0 ? (1 << 17) / row.segment + 3 : (1 << 18) + 777);
  std::uint64_t seed = 0;
  for (const std::int64_t count : counts) {
    const std::int64_t elements = row.segment > 0 ? count * row.segment : count;
    const std::int64_t values = row.segment > 0 ? count : 1;
    for (const Fill fill : {Fill::uniform, Fill::whole, Fill::nonfinite}) {
      const int shift = static_cast<int>(++seed % 3);
      SCOPED_TRACE(fmt::format("{}, {} elements of {}, {} off: {}", name, elements,
                               test::name_of(fill), shift, row.plan));
      const std::vector<Column> inputs = make_inputs(graph, elements, fill, seed);
      const codegen::PlanRequest request{
          .accuracy = options.accuracy, .determinism = determinism, .segment = row.segment};
      const codegen::Plan plan =
          make_plan(graph, kernel.target(), request, codegen::parse_choice(row.plan)).value();
      const auto expected =
          reference(graph, inputs, elements, {.segment = row.segment, .plan = plan});

      std::vector<Column> run;
      Outputs outputs;
      for (const codegen::NodeId output : graph.outputs) {
        run.emplace_back(graph.node(output).type, values);
        run.back().fill(std::byte{0x5A});
      }
      for (Column& column : run)
        outputs.push_back(
            OutputBinding(static_cast<void*>(column.data()), column.type(), column.count()));
      kernel.run_into(host_bindings(graph, inputs, {}), outputs);
      EXPECT_EQ(judge(expected, run).problems, "") << "run()";

      DeviceLaunch launch(kernel, graph, inputs, {}, elements, values, shift);
      std::string problems;
      kernel.launch(launch.args());
      const std::vector<Column> first = launch.results(problems);
      EXPECT_EQ(judge(expected, first).problems + problems, "") << "launch()";
      // Scratch as the last launch left it must do for the next one.
      launch.poison_outputs();
      kernel.launch(launch.args());
      const std::vector<Column> second = launch.results(problems);
      EXPECT_EQ(judge(expected, second).problems + problems, "") << "launch() once more";
      for (std::size_t i = 0; determinism == Determinism::run_to_run && i < first.size(); ++i) {
        for (std::int64_t s = 0; s < values; ++s)
          ASSERT_EQ(first[i].get(s), second[i].get(s)) << "another run, other bits";
      }
    }
  }
}

/// The same of segments that offsets tell, of lengths of every kind.
void check_offsets(const PublishedCase& row, const char* name) {
  std::vector<std::int64_t> counts = row.counts;
  counts.push_back((1 << 18) + 777);
  std::uint64_t seed = 0;
  for (const std::int64_t count : counts) {
    for (const Lengths lengths : kAllLengths) {
      ++seed;
      const Fill fill = seed % 3 == 0   ? Fill::uniform
                        : seed % 3 == 1 ? Fill::whole
                                        : Fill::nonfinite;
      SCOPED_TRACE(
          fmt::format("{}, {} elements of {}: {}", name, count, test::name_of(fill), row.plan));
      const Ragged ragged =
          make_ragged(lengths, count, seed, seed % 2 == 1, seed % 5 == 2 ? DType::i32 : DType::i64);
      const Verdict verdict =
          check_ragged_on_device(program(name), ragged, fill, seed, static_cast<int>(seed % 3),
                                 row.plan, row.loose ? Accuracy::as_published : Accuracy::accurate);
      EXPECT_EQ(verdict.problems, "");
    }
  }
}

TEST_P(GpuPublished, AgreesWithTheReference) {
  const PublishedCase& row = published_cases()[GetParam()];
  if (row.offsets) {
    check_offsets(row, "sum_f16");
    check_offsets(row, "sum_bf16");
    return;
  }
  check(row, "sum_f16", Determinism::run_to_run);
  check(row, "sum_bf16", Determinism::run_to_run);
  if (row.segment == 0) check(row, "sum_f16", Determinism::not_guaranteed);
}

INSTANTIATE_TEST_SUITE_P(All, GpuPublished,
                         testing::Range(std::size_t{0}, published_cases().size()));

}  // namespace
}  // namespace chainfold::test
