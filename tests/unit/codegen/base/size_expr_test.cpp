#include "chainfold/codegen/base/size_expr.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {
namespace {

TEST(SizeExpr, EvaluatesOverParameters) {
  const SizeExpr s = SizeExpr::param(0, "segments"), n = SizeExpr::param(1, "n");
  const std::vector<std::uint64_t> params{100, 7};
  EXPECT_EQ((ceil_div(s, 32) * 8).evaluate(params), 32);
  EXPECT_EQ((s - n * 3 + 1).evaluate(params), 80);
  EXPECT_EQ(max(n, s).evaluate(params), 100);
  EXPECT_EQ(min(n, s).evaluate(params), 7);
  EXPECT_EQ(ceil_div(SizeExpr(96), 32).evaluate({}), 3);
  EXPECT_EQ(ceil_div(n - 10, 2).evaluate(params), -1);  // -1.5 rounds up
  EXPECT_EQ(SizeExpr::param(0, "origin").evaluate(std::vector<std::uint64_t>{~std::uint64_t{0}}),
            -1);
}

TEST(SizeExpr, PrintsWithTheParenthesesItNeeds) {
  const SizeExpr s = SizeExpr::param(0, "segments"), n = SizeExpr::param(1, "n");
  EXPECT_EQ((ceil_div(s, 32) * 8).print(), "ceil_div(segments, 32) * 8");
  EXPECT_EQ(((s + n) * 2).print(), "(segments + n) * 2");
  EXPECT_EQ((s - (n - 1)).print(), "segments - (n - 1)");
  EXPECT_EQ((s - n - 1).print(), "segments - n - 1");
  EXPECT_EQ(max(s + 1, n).print(), "max(segments + 1, n)");
  EXPECT_EQ(min(max(s, 1), n).print(), "min(max(segments, 1), n)");
  EXPECT_EQ((s * SizeExpr(-1)).print(), "segments * (-1)");
}

TEST(SizeExpr, TellsWhichParametersItReads) {
  const SizeExpr s = SizeExpr::param(0, "segments"), n = SizeExpr::param(3, "n");
  EXPECT_EQ(SizeExpr(7).params(), 0);
  EXPECT_EQ((s * 2).params(), 1);
  EXPECT_EQ(max(1, ceil_div(n - s, 8)).params(), 4);
}

TEST(SizeExpr, FoldsConstants) { EXPECT_EQ((SizeExpr(3) * 4 + 2).print(), "14"); }

TEST(SizeExpr, RefusesWhatHasNoValue) {
  const SizeExpr s = SizeExpr::param(0, "segments");
  const std::vector<std::uint64_t> zero{0}, huge{std::numeric_limits<std::int64_t>::max()};
  EXPECT_THROW((void)ceil_div(SizeExpr(8), s).evaluate(zero), InternalError);
  EXPECT_THROW((void)(s * 2).evaluate(huge), InternalError);
  EXPECT_THROW((void)s.evaluate({}), InternalError);
}

}  // namespace
}  // namespace chainfold::codegen
