// Folds that need their order as native code of the CPU, through the public interface, held against
// plain loops.
#include <gtest/gtest.h>

#include <string>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/scalar_folds.hpp"

namespace chainfold::test {
namespace {

class CpuFoldOrder : public testing::TestWithParam<std::size_t> {};

TEST_P(CpuFoldOrder, IsThatOfTheElements) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  // LLVM takes a second or two for each; every size is some fold's.
  EXPECT_EQ(check_fold_order(scalar_folds()[GetParam()], target("cpu"), GetParam(), 2), "");
}

INSTANTIATE_TEST_SUITE_P(All, CpuFoldOrder, testing::Range(std::size_t{0}, scalar_folds().size()),
                         [](const auto& info) { return scalar_folds()[info.param].program; });

}  // namespace
}  // namespace chainfold::test
