// What tests of programs in the interpreter share: cases told whole when they fail, and
// schedules in turn.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {

/// The schedules in turn, with one resident block and with several.
inline codegen::InterpOptions options_of(std::size_t turn) {
  using codegen::Schedule;
  constexpr Schedule kSchedules[] = {Schedule::in_order, Schedule::reversed, Schedule::random};
  return {.schedule = kSchedules[turn % 3], .seed = turn, .resident_blocks = turn % 2 == 0 ? 1 : 3};
}

/// A case, told whole.
inline std::string words(const TestProgram& tested, const codegen::Target& target,
                         const InterpCase& c) {
  return fmt::format(
      "{} on {}, segment {}, {} elements of {} (seed {}), aligned to {}{}, schedule {} (seed {}), "
      "{} resident, {} chunks{}: {}",
      tested.name, target.name, c.segment, c.elements, name_of(c.fill), c.seed, c.base_alignment,
      c.in_place ? ", in place" : "", static_cast<int>(c.options.schedule), c.options.seed,
      c.options.resident_blocks, c.chunks,
      c.ragged ? fmt::format(", {} segments by offsets over {}", c.ragged->segments.size(),
                             c.ragged->elements)
               : "",
      c.choice ? to_text(*c.choice) : "the default");
}

/// Runs one case; an exception is a failure like a wrong number. Returns what the check says.
inline Verdict expect_right(const TestProgram& tested, const codegen::Target& target,
                            const InterpCase& c) {
  SCOPED_TRACE(words(tested, target, c));
  try {
    Verdict verdict = check_interpreted(tested, target, c);
    EXPECT_EQ(verdict.problems, "");
    return verdict;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    return {};
  }
}

/// The outputs are the same bits under every schedule.
inline void expect_same_bits(const codegen::Graph& graph, const codegen::Compiled& compiled,
                             const std::vector<Column>& inputs, InterpCase c) {
  std::vector<Column> first;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    c.options = options_of(turn);
    std::vector<Column> outputs = interpret_graph(graph, compiled, inputs, {}, c);
    if (first.empty()) first = std::move(outputs);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (std::int64_t i = 0; i < outputs[o].count(); ++i)
        ASSERT_EQ(outputs[o].get(i), first[o].get(i)) << "value " << i << ", turn " << turn;
  }
}

/// Runs a scan of normal data under `turns` schedules, the plan of each as `plan_of` says: every
/// value has the bits of the first run.
template <class PlanOf>
void expect_same_bits(const codegen::Graph& graph, const codegen::Target& target,
                      std::int64_t segment, std::int64_t elements, std::size_t turns,
                      const PlanOf& plan_of) {
  const auto inputs = make_inputs(graph, elements, Fill::normal, 3);
  std::vector<Column> first;
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto plan = make_plan(graph, target, {.segment = segment}, plan_of(turn));
    ASSERT_TRUE(plan) << to_text(plan_of(turn));
    InterpCase c{.segment = segment, .elements = elements};
    c.options = options_of(turn);
    auto outputs =
        interpret_graph(graph, codegen::compile_plan(graph, target, *plan), inputs, {}, c);
    if (first.empty()) first = std::move(outputs);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      for (std::int64_t i = 0; i < outputs[o].count(); ++i)
        ASSERT_EQ(outputs[o].get(i), first[o].get(i)) << "value " << i << ", turn " << turn;
    }
  }
}

}  // namespace chainfold::test
