// Computations without inputs in the interpreter: by the default plans of any target, and by
// others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/interpreted.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

/// Nothing is folded; sums; moments, which take plans of their own; a scan, which columns have not.
std::vector<TestProgram> programs_of_none() {
  const auto index = [] { return cf::index(); };
  return {{.name = "extent", .over = [](const auto& p) { return cf::over(p, cf::count()); }},
          {.name = "sums",
           .over =
               [=](const auto& p) {
                 return cf::over(p, cf::sum(index()), cf::count(cf::where(index() % 2 == 1)),
                                 cf::max(index()));
               }},
          {.name = "moments",
           .over =
               [=](const auto& p) {
                 return cf::over(p, cf::variance(cf::cast<float>(index())), cf::mean(index()));
               }},
          {.name = "scan", .over = [=](const auto& p) {
             return cf::over(p, cf::count(), cf::inclusive_sum(index()));
           }}};
}

void check(const TestProgram& program, const codegen::Target& target, InterpCase what) {
  const Verdict verdict = check_interpreted(program, target, what);
  EXPECT_EQ(verdict.problems, "") << program.name << " on " << target.name << ", segment "
                                  << what.segment << ", " << what.elements << " elements"
                                  << (what.choice ? ", plan " + codegen::to_text(*what.choice)
                                                  : "");
}

class NoInputsInterpreted : public testing::TestWithParam<const char*> {};

TEST_P(NoInputsInterpreted, AreRightByAnyPlan) {
  const codegen::Target target = codegen::parse_target(GetParam());
  const struct {
    dsl::Partition partition;
    std::int64_t size;
    bool columns;
  } partitions[] = {{cf::whole(), 0, false},           {cf::segments(7), 7, false},
                    {cf::segments(16), 16, false},     {cf::segments(1000), 1000, false},
                    {cf::segments(5000), 5000, false}, {cf::columns(3), 3, true},
                    {cf::columns(64), 64, true}};
  for (const TestProgram& program : programs_of_none()) {
    for (const auto& [partition, size, columns] : partitions) {
      if (columns && program.name == "scan") continue;
      const auto graph = codegen::legalize(program.over(partition).graph(), target);
      InterpCase what{.segment = size, .columns = columns};
      for (const std::int64_t n : {1, 1000, 70'001}) {
        what.elements = size > 0 ? std::max<std::int64_t>(1, n / size) * size : n;
        what.choice.reset();
        check(program, target, what);
      }
      // Few elements may have plans of their own.
      for (const std::int64_t most : {std::int64_t{0}, std::int64_t{1} << 14}) {
        const auto space =
            codegen::plan_space(graph, target, {.segment = size, .size_limit = most});
        const std::size_t step = space.size() / 12 + 1;
        what.elements = size > 0 ? 11 * size : 5003;
        for (std::size_t i = 0; i < space.size(); i += step) {
          what.choice = space[i];
          check(program, target, what);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NoInputsInterpreted, testing::Values("sm_75", "sm_90", "cpu"));

}  // namespace
}  // namespace chainfold::test
