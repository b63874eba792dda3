// Hints of plans: they can be left out, and a plan is legal with others than the rules' own.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "chainfold/bench/compile_cases.hpp"
#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {
namespace {

std::vector<Target> targets() {
  return {parse_target("sm_75"), parse_target("sm_90"), cpu_target(8, "znver4"),
          cpu_target(64, "sapphirerapids"), cpu_target(2)};
}

TEST(PlanHints, CanBeLeftOutOfEveryDefaultPlan) {
  int differ = 0;
  for (const bench::CompileCase& what : bench::compile_cases()) {
    for (const Target& target : targets()) {
      const Graph graph = legalize(what.computation.graph(), target);
      const PlanRequest request{.segment = what.segment + what.columns};
      PlanChoice choice = default_choice(graph, target, request);
      const std::optional<Plan> with = make_plan(graph, target, request, choice);
      choice.hints = false;
      const std::string text = to_text(choice);
      ASSERT_TRUE(text.ends_with(" hints=off")) << text;
      EXPECT_EQ(parse_choice(text), choice) << text;
      const std::optional<Plan> without = make_plan(graph, target, request, choice);
      ASSERT_TRUE(with && without) << what.name << " on " << target.name << ": " << text;
      EXPECT_FALSE(without->hints.evict_first || without->hints.half_vectors ||
                   without->hints.to_lines)
          << what.name;
      EXPECT_EQ(without->hints.streams, 1) << what.name;
      EXPECT_EQ(without->hints.read_ahead, 0) << what.name;
      EXPECT_EQ(without->hints.non_temporal_from, 0) << what.name;
      differ += print(*with, graph) != print(*without, graph) ? 1 : 0;
      EXPECT_NO_THROW((void)compile_plan(graph, target, *without)) << what.name << ": " << text;
    }
  }
  EXPECT_GT(differ, 50);
}

TEST(PlanHints, AreLegalWhereTheTargetCanFollowThem) {
  const Computation computation =
      over(segments(24), sum(input<float>("x")));  // too short for whole lines
  const Target gpu = parse_target("sm_90"), cpu = cpu_target(8, "znver4");
  Plan plan = choose_plan(computation.graph(), gpu, {.segment = 24});
  plan.hints.evict_first = !plan.hints.evict_first;
  EXPECT_NO_THROW(verify(plan, computation.graph(), gpu));
  plan.hints.half_vectors = true;
  EXPECT_THROW(verify(plan, computation.graph(), gpu), InternalError);
  Plan on_cpu = choose_plan(computation.graph(), cpu, {.segment = 24});
  on_cpu.hints.half_vectors = !on_cpu.hints.half_vectors;
  on_cpu.hints.read_ahead = 4096;
  EXPECT_NO_THROW(verify(on_cpu, computation.graph(), cpu));
  on_cpu.hints.evict_first = true;
  EXPECT_THROW(verify(on_cpu, computation.graph(), cpu), InternalError);
  on_cpu.hints.evict_first = false;
  on_cpu.hints.read_ahead = -1;
  EXPECT_THROW(verify(on_cpu, computation.graph(), cpu), InternalError);
}

}  // namespace
}  // namespace chainfold::codegen
