// Partial states: elements in batches give what they give at once, whatever they are cut into, on
// every kind of target and across them. CHAINFOLD_RANDOM_SEED=n repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/states.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/tests/support/expect_scan.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

constexpr const char* kTargets[] = {"sm_75", "sm_90", "cpu"};
using State = std::vector<Bits>;

/// The outputs of a graph over inputs that are found by their names.
std::vector<Column> run(const codegen::Graph& written, const TestProgram& tested,
                        const codegen::Target& target, const codegen::Graph& names,
                        const std::vector<Column>& columns, std::int64_t begin, std::int64_t end,
                        std::int64_t segment, std::size_t turn) {
  const codegen::Graph graph = codegen::legalize(written, target);
  const codegen::Compiled compiled =
      codegen::compile_graph(graph, target, {.segment = segment, .base_alignment = 4});
  std::vector<Column> inputs;
  for (const codegen::GraphInput& input : graph.inputs) {
    const auto at = std::find_if(names.inputs.begin(), names.inputs.end(),
                                 [&](const auto& known) { return known.name == input.name; });
    const Column& from = columns[static_cast<std::size_t>(at - names.inputs.begin())];
    Column& column = inputs.emplace_back(input.type, end - begin);
    for (std::int64_t i = begin; i < end; ++i) column.set(i - begin, from.get(i));
  }
  InterpCase c;
  c.elements = end - begin;
  c.segment = segment;
  c.seed = turn;
  c.base_alignment = 4;
  c.options = options_of(turn);
  if (target.arch > 0) c.options.arch = target.arch;
  std::vector<Column> outputs =
      interpret_graph(graph, compiled, inputs, param_bits(tested, graph, segment), c);
  for (const Column& output : outputs) EXPECT_TRUE(output.sentinel_intact());
  return outputs;
}

/// States as columns of the graphs that take them.
struct StateColumns {
  codegen::Graph names;  // inputs alone
  std::vector<Column> columns;
};
StateColumns columns_of(const codegen::StateLayout& layout, const std::vector<State>& states) {
  StateColumns result;
  for (std::size_t f = 0; f < layout.fields.size(); ++f) {
    const DType type = layout.fields[f].type;
    result.names.inputs.push_back({fmt::format("state_{}", f), type});
    Column& column = result.columns.emplace_back(type, static_cast<std::int64_t>(states.size()));
    for (std::size_t s = 0; s < states.size(); ++s)
      column.set(static_cast<std::int64_t>(s), states[s][f]);
  }
  return result;
}

State state_of(const std::vector<Column>& outputs, std::int64_t row = 0) {
  State state;
  for (const Column& output : outputs) state.push_back(output.get(row));
  return state;
}

using ProgramOnTarget = std::tuple<std::size_t, std::size_t>;
class States : public testing::TestWithParam<ProgramOnTarget> {};

/// Batches of random lengths, some empty, each on a target of its own, are merged one by one, all
/// at once by the graph of merges, and in pairs; the results are those of all elements.
TEST_P(States, OfBatchesAreThoseOfAll) {
  const TestProgram& tested = programs()[std::get<0>(GetParam())];
  const std::size_t own = std::get<1>(GetParam());
  const auto targets = [&](std::size_t i) {
    return codegen::parse_target(kTargets[(own + i) % std::size(kTargets)]);
  };
  const codegen::Graph graph = tested.over(whole()).graph();
  codegen::StateLayout layout;
  try {
    layout = codegen::state_layout(graph);
  } catch (const UserError& error) {
    ASSERT_NE(std::string(error.what()).find("partial states"), std::string::npos);
    GTEST_SKIP() << error.what();
  }
  const codegen::Graph to = codegen::to_states(graph), from = codegen::from_states(graph);
  const codegen::StateMerge merge_one(graph);
  const codegen::Graph merge =
      codegen::merge_states(graph, {.kind = codegen::Partition::Kind::whole});
  ASSERT_EQ(to.outputs.size(), layout.fields.size());
  for (std::size_t f = 0; f < layout.fields.size(); ++f)
    ASSERT_EQ(to.node(to.outputs[f]).type, layout.fields[f].type) << f;
  const char* given = std::getenv("CHAINFOLD_RANDOM_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : std::random_device{}();
  SCOPED_TRACE(fmt::format("CHAINFOLD_RANDOM_SEED={}", seed));
  std::mt19937_64 random(std::get<0>(GetParam()) * 3 + own + seed);
  for (const Fill fill : {tested.fills.front(), tested.fills.back()}) {
    const std::int64_t n = 1 + static_cast<std::int64_t>(random() % 3000);
    const std::vector<Column> inputs = make_inputs(graph, n, fill, random());
    State init;
    for (const auto& field : layout.fields) init.push_back(field.init);
    std::vector<State> states;
    State all = init;
    for (std::int64_t begin = 0; begin < n || states.size() < 2;) {
      const auto most = static_cast<std::uint64_t>(n - begin);
      const std::int64_t end =
          begin + static_cast<std::int64_t>(std::min(most, random() % (most + 1) + random() % 2));
      const std::size_t turn = states.size();
      states.push_back(
          state_of(run(to, tested, targets(turn), graph, inputs, begin, end, 0, turn)));
      ASSERT_EQ(states.back()[0], static_cast<Bits>(end - begin));
      merge_one(all, states.back());
      begin = end;
    }
    ASSERT_EQ(all[0], static_cast<Bits>(n));
    const auto count = static_cast<std::int64_t>(states.size());
    const StateColumns columns = columns_of(layout, states);
    const State at_once = state_of(
        run(merge, tested, targets(0), columns.names, columns.columns, 0, count, 0, states.size()));
    // Values of both states, whichever way they were merged.
    const StateColumns merged = columns_of(layout, {all, at_once, init});
    const std::vector<Column> values =
        run(from, tested, targets(1), merged.names, merged.columns, 0, 3, 1, 1);
    ReferenceRequest asked{.params = param_bits(tested, graph, 0),
                           .transcendental_ulp = tested.transcendental ? 4 : 0};
    const codegen::Target target = targets(0);
    const codegen::Graph legal = codegen::legalize(graph, target);
    asked.plan = as_written(codegen::compile_graph(legal, target, {}).plan, legal, graph);
    const auto expected = reference(graph, inputs, n, asked);
    const auto of_nothing = reference(graph, make_inputs(graph, 0, fill, 1), 0, asked);
    for (std::size_t o = 0; o < values.size(); ++o) {
      for (const std::int64_t row : {0, 1})
        EXPECT_EQ(mismatch(expected[o][0], values[o].get(row)), "")
            << "output " << o << ", " << (row == 0 ? "merged one by one" : "merged at once")
            << ", n " << n << ", " << name_of(fill) << ", batches " << count;
      EXPECT_EQ(mismatch(of_nothing[o][0], values[o].get(2)), "") << "of nothing, output " << o;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, States,
                         testing::Combine(testing::Range<std::size_t>(0, programs().size()),
                                          testing::Range<std::size_t>(0, std::size(kTargets))),
                         [](const auto& info) {
                           return programs()[std::get<0>(info.param)].name + "_" +
                                  kTargets[std::get<1>(info.param)];
                         });

}  // namespace
}  // namespace chainfold::test
