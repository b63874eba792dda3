// The tuner on a GPU: every plan of the space is right there, and the choice runs.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/tuning/autotune.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

class GpuTuning : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(GpuTuning, EveryCandidateIsRight) {
  const std::int64_t s = GetParam();
  const auto x = input<f16>("x");
  const auto y = input<float>("y");
  const auto each = [&](auto... outputs) {
    return s > 0 ? over(segments(s), outputs...) : over(whole(), outputs...);
  };
  for (const Computation& computation :
       std::vector<Computation>{each(sum(x)), each(sum(y)), each(mean(x), max(x)),
                                each(variance(y)), each(sum(x * x))}) {
    const Kernel kernel = compile(computation, {.target = target("gpu"),
                                                .tuning = Tuning::measure,
                                                .tuning_elements = 1 << 22,
                                                .tuning_seconds = 0});  // every plan
    const auto tuning = kernel.tuning();
    ASSERT_TRUE(tuning);
    EXPECT_EQ(kernel.plan(), tuning->plan);
    for (const auto& candidate : tuning->candidates)
      EXPECT_EQ(candidate.problem + candidate.skipped, "") << "S = " << s << ": " << candidate.plan;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuTuning, testing::Values(0, 1, 8, 24, 64, 100, 1000, 16384));

}  // namespace
}  // namespace chainfold::test
