// Computations without inputs, on the GPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/no_inputs.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

std::vector<Column> launch_on_device(const Kernel& kernel, const Computation& computation,
                                     std::int64_t elements) {
  DeviceLaunch launch(kernel, computation.graph(), {}, {}, elements,
                      segments_of(computation, elements));
  launch.poison_outputs();
  kernel.prepare(launch.args());
  kernel.launch(launch.args());
  std::string problems;
  std::vector<Column> results = launch.results(problems);
  EXPECT_EQ(problems, "");
  return results;
}

class GpuNoInputs : public testing::TestWithParam<Tuning> {};

TEST_P(GpuNoInputs, AreCountedOnly) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Options options{.target = target("gpu"), .tuning = GetParam()};
  EXPECT_EQ(check_no_inputs(options, 3'000'017, launch_on_device), "");
}

INSTANTIATE_TEST_SUITE_P(All, GpuNoInputs,
                         testing::Values(Tuning::off, Options{}.tuning, Tuning::measure));

}  // namespace
}  // namespace chainfold::test
