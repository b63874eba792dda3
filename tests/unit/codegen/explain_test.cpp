// explain tells of the plan that runs, and why it is that one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

const std::string kPinned = "rows warps=1 depth=2 rows=2 bytes=0 simt";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Explain : public testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::cpu_plugin_available()) GTEST_SKIP() << "no CPU plugin";
  }
  static auto sum_of(std::int64_t segment) {
    return over(segments(segment), sum(input<float>("x")));
  }
};

TEST_F(Explain, BeforeCompilingTheDefaultOrThePinnedPlan) {
  const std::string rules = explain(sum_of(64), target("cpu"));
  EXPECT_TRUE(
      has(rules, "choice\n  rows warps=1 depth=64 lanes=16 rows=16 bytes=0 simt\n  by rules\n"))
      << rules.substr(0, 200);
  const Options pinned{.target = target("cpu"), .plan = kPinned};
  const std::string text = explain(sum_of(64), pinned);
  EXPECT_TRUE(has(text, "choice\n  " + kPinned + "\n  pinned\n"));
  EXPECT_TRUE(has(text, "rows 2, merged by patterns of two\n")) << "the plan itself, too";
  expect_error<UserError>([&] { explain(over(whole(), sum(input<float>("x"))), pinned); },
                          ErrorCode::unsupported, "plan", {"not legal"});
}

TEST_F(Explain, AKernelTellsOfThePlanThatItRuns) {
  const Kernel pinned = compile(sum_of(64), {.target = target("cpu"), .plan = kPinned});
  EXPECT_EQ(pinned.explain(),
            explain(sum_of(64), Options{.target = target("cpu"), .plan = kPinned}));
  const Kernel tuned =
      compile(sum_of(66),
              {.target = target("cpu"), .tuning = Tuning::measure, .tuning_elements = 66 * 1000});
  const std::string text = tuned.explain();
  EXPECT_TRUE(has(text, "choice\n  " + tuned.plan() + "\n  tuned on CPU")) << text.substr(0, 200);
  EXPECT_TRUE(has(text, tuned.plan_summary()));
}

TEST_F(Explain, AKernelOfSeveralSizesTellsOfTheLastCompiled) {
  const auto sized = over(segments(param<std::int64_t>("S")), sum(input<float>("x")));
  const Kernel kernel = compile(sized, {.target = target("cpu")});
  EXPECT_EQ(kernel.plan_facts().plan, "");
  EXPECT_TRUE(has(kernel.explain(), "segment 256\n")) << "an example where nothing is compiled";
  const std::vector<float> data(300, 1);
  EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", data}, {"S", std::int64_t{30}}})).size(), 10U);
  EXPECT_TRUE(has(kernel.explain(), "segment 30\n"));
}

TEST_F(Explain, FactsOfAPlan) {
  const auto x = input<float>("x");
  const PlanFacts sums =
      compile(sum_of(64), {.target = target("cpu"), .plan = kPinned}).plan_facts();
  EXPECT_EQ(sums.plan, kPinned);
  EXPECT_EQ(sums.strategy, "rows");
  EXPECT_TRUE(sums.lanes && !sums.tensor_cores && sums.bounded);
  EXPECT_EQ(sums.launches, 1);
  const Kernel kernel = compile(over(whole(), sum(x), max(x)), {.target = target("cpu")});
  const PlanFacts both = kernel.plan_facts();
  EXPECT_EQ(both.strategy, "parts");
  EXPECT_EQ(both.launches, 2);
  EXPECT_TRUE(has(kernel.plan_summary(), fmt::format("error bound {:g} u", both.error_bound_u)));
  EXPECT_EQ(compile(over(whole(), max(x)), {.target = target("cpu")}).plan_facts().error_bound_u,
            0);
  EXPECT_FALSE(compile(over(whole(), variance(x)), {.target = target("cpu")}).plan_facts().bounded);
}

}  // namespace
}  // namespace chainfold::test
