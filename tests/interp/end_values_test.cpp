// Folds of values near the ends of their types, in the interpreter: by default plans of any target,
// and by any plan.
#include <gtest/gtest.h>

#include <random>

#include "chainfold/tests/support/end_values.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

/// By the default plan, or (`seed` > 0) any.
Executor interpreter(const codegen::Target& target, std::uint64_t seed) {
  return [target, seed](const Computation& computation, const std::vector<Column>& inputs,
                        std::int64_t row) {
    const codegen::Graph graph = codegen::graph_for(computation.graph(), target);
    InterpCase run{.segment = row,
                   .columns = graph.partition.kind == codegen::Partition::Kind::columns,
                   .elements = inputs[0].count()};
    if (target.arch > 0) run.options.arch = target.arch;
    const codegen::PlanRequest request{.segment = row};
    run.choice = codegen::default_choice(graph, target, request);
    if (seed > 0) {
      std::mt19937_64 random(seed);
      const auto space = codegen::plan_space(graph, target, request);
      run.choice = space[random() % space.size()];
    }
    auto plan = codegen::make_plan(graph, target, request, *run.choice);
    const auto compiled = codegen::compile_plan(graph, target, *std::move(plan));
    return interpret_graph(graph, compiled, inputs, {}, run);
  };
}

class EndValuesInterpreted : public testing::TestWithParam<std::size_t> {};

TEST_P(EndValuesInterpreted, AreOrdinaryNumbers) {
  const EndCase& what = end_cases()[GetParam()];
  std::uint64_t seed = GetParam();
  for (const char* name : {"sm_75", "sm_90", "cpu"}) {
    const codegen::Target target = codegen::parse_target(name);
    SCOPED_TRACE(name);
    for (const std::int64_t n : {3, 33, 1001})
      EXPECT_EQ(check_end_case(what, n, interpreter(target, 0)), "");
    for (const std::int64_t n : {2, 24, 300})
      EXPECT_EQ(check_end_case(what, n, interpreter(target, ++seed)), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EndValuesInterpreted,
                         testing::Range(std::size_t{0}, end_cases().size()));

}  // namespace
}  // namespace chainfold::test
