// Computations without inputs, on the CPU.
#include <gtest/gtest.h>

#include "chainfold/tests/support/no_inputs.hpp"

namespace chainfold::test {
namespace {

class NoInputs : public testing::TestWithParam<Tuning> {};

TEST_P(NoInputs, AreCountedOnly) {
  EXPECT_EQ(
      check_no_inputs({.target = target("cpu"), .tuning = GetParam()}, 300'007, launch_on_host),
      "");
}

INSTANTIATE_TEST_SUITE_P(All, NoInputs,
                         testing::Values(Tuning::off, Options{}.tuning, Tuning::measure));

}  // namespace
}  // namespace chainfold::test
