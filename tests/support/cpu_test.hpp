// Tests that compile for this machine's CPU, and are skipped where there is no plugin.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {

class CpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
    options_.target = target("cpu");
  }
  [[nodiscard]] Kernel compiled(const Computation& computation) const {
    return compile(computation, options_);
  }
  Options options_;
};

}  // namespace chainfold::test
