// What tests of the CPU's code against the interpreter have in common.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "chainfold/tests/support/data.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {

inline std::string type_name(const ::testing::TestParamInfo<DType>& info) {
  return std::string(name_of(info.param));
}

class LlvmVsInterp : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

}  // namespace chainfold::test
