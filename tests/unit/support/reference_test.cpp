// The reference that numbers are held against must itself be right, and must be able to say no.
#include "chainfold/tests/support/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/exact_sum.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

Bits f32(double value) { return codegen::bits_of_double(DType::f32, value); }

Column column(DType type, const std::vector<double>& values) {
  Column c(type, static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    c.set_double(static_cast<std::int64_t>(i), values[i]);
  return c;
}

/// The one expected value of a program over all elements, whose folds may err by `bound_u`.
Expected expect_one(const char* name, const std::vector<double>& values, double bound_u) {
  const Computation computation = program(name).over(whole());
  const codegen::Graph& graph = computation.graph();
  ReferenceRequest request;
  request.plan.folds.resize(graph.folds.size());
  for (codegen::FoldPlan& fold : request.plan.folds) fold.error_bound_u = bound_u;
  request.plan.parts.quantum = request.plan.parts.wanted = 1;
  std::vector<Column> inputs;
  inputs.push_back(column(graph.inputs[0].type, values));
  return reference(graph, inputs, inputs[0].count(), request)[0][0];
}

TEST(Reference, NanAndNumbersNeverPassForOneAnother) {
  const double nan = std::nan("");
  const Expected number = expect_one("sum_f32", {1, 2}, 1);
  EXPECT_EQ(mismatch(number, f32(3)), "");
  EXPECT_NE(mismatch(number, f32(nan)), "");
  const Expected not_a_number = expect_one("sum_f32", {1, nan}, 1);
  EXPECT_TRUE(not_a_number.nan);
  EXPECT_EQ(mismatch(not_a_number, f32(nan)), "");
  EXPECT_NE(mismatch(not_a_number, f32(1)), "");
  const Expected opposite = expect_one("sum_f32", {HUGE_VAL, -HUGE_VAL}, 1);
  EXPECT_NE(mismatch(opposite, f32(0)), "");
  const Expected infinite = expect_one("sum_f32", {HUGE_VAL, 1}, 1);
  EXPECT_EQ(mismatch(infinite, f32(HUGE_VAL)), "");
  EXPECT_NE(mismatch(infinite, f32(std::numeric_limits<float>::max())), "");
}

TEST(Reference, SumsHoldToTheirBoundAndNoFurther) {
  // 1 + 2^-24 lies half way: with one unit of error both neighbours may be given, no others.
  const Expected sum = expect_one("sum_f32", {1, 0x1p-24}, 1);
  EXPECT_EQ(mismatch(sum, f32(1)), "");
  EXPECT_EQ(mismatch(sum, f32(1 + 0x1p-23)), "");
  EXPECT_NE(mismatch(sum, f32(1 + 0x1p-22)), "");
  EXPECT_NE(mismatch(sum, f32(1 - 0x1p-24)), "");
  EXPECT_NEAR(error_in_u(sum, f32(1 + 0x1p-23)), 1, 1e-6);
  const Expected zero = expect_one("sum_f32", {1, -1}, 0);
  EXPECT_EQ(mismatch(zero, f32(0)), "");
  EXPECT_NE(mismatch(zero, f32(-0.0)), "") << "a sum is never -0";
  // What cancels counts with its size.
  const Expected cancelled = expect_one("sum_f32", {1, 0x1p-30, -1}, 1);
  EXPECT_EQ(mismatch(cancelled, f32(0)), "");
  EXPECT_EQ(mismatch(cancelled, f32(0x1p-23)), "");
  EXPECT_NE(mismatch(cancelled, f32(0x1p-22)), "");
}

TEST(Reference, IntegersMinimaAndFlagsAreExact) {
  const Expected sum = expect_one("sum_i32", {1, 2}, 5);
  EXPECT_EQ(mismatch(sum, 3), "");
  EXPECT_NE(mismatch(sum, 4), "");
  EXPECT_FALSE(sum.interval);
}

TEST(Reference, VarianceIsThatOfTheExactDeviations) {
  // A large mean: E[x^2] - E[x]^2 in f32 would give nothing like it.
  const Expected variance = expect_one("variance_f32", {4096, 4097, 4098, 4099}, 0);
  EXPECT_EQ(mismatch(variance, f32(1.25)), "");
  EXPECT_NE(mismatch(variance, f32(1.3)), "");
  EXPECT_NE(mismatch(variance, f32(0)), "");
  EXPECT_EQ(mismatch(expect_one("variance_f32", {7}, 0), f32(0)), "");
  EXPECT_TRUE(expect_one("variance_f32", {}, 0).nan);
}

TEST(Reference, DerivedValuesKeepTheirIntervalsTight) {
  // norm = sqrt(sum): an error of e in the sum is half of it in the root.
  const Expected norm = expect_one("norm_f32", {3, 4}, 4);
  EXPECT_EQ(mismatch(norm, f32(5)), "");
  EXPECT_LE(norm.hi - norm.lo, 5 * 5 * 0x1p-24 + 2 * 0x1p-21);
  EXPECT_NE(mismatch(norm, f32(5.00001)), "");
}

TEST(Reference, JudgesWholeOutputs) {
  const Computation computation = program("sum_i32").over(segments(2));
  std::vector<Column> inputs;
  inputs.push_back(column(DType::i32, {1, 2, 3, 4}));
  ReferenceRequest request{.segment = 2};
  request.plan.folds.resize(1);
  const auto expected = reference(computation.graph(), inputs, 4, request);
  std::vector<Column> actual;
  actual.push_back(column(DType::i64, {3, 7}));
  EXPECT_EQ(judge(expected, actual).problems, "");
  EXPECT_EQ(judge(expected, actual).values, 2);
  actual[0].set(1, 8);
  EXPECT_NE(judge(expected, actual).problems.find("value 1"), std::string::npos);
  actual[0].set(1, 7);
  actual[0].data()[16] = std::byte{0};
  EXPECT_NE(judge(expected, actual).problems.find("behind its end"), std::string::npos);
  actual[0] = column(DType::i64, {3});
  EXPECT_NE(judge(expected, actual).problems, "");
}

/// The one output of `computation` over two inputs or one; its folds may err by a unit.
std::vector<Expected> expect_all(const Computation& computation,
                                 const std::vector<std::vector<double>>& values,
                                 std::int64_t segment = 0) {
  const codegen::Graph& graph = computation.graph();
  ReferenceRequest request{.segment = segment};
  request.plan.folds.resize(graph.folds.size());
  for (codegen::FoldPlan& fold : request.plan.folds) fold.error_bound_u = 1;
  std::vector<Column> inputs;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    inputs.push_back(column(graph.inputs[i].type, values[i]));
  return reference(graph, inputs, inputs[0].count(), request)[0];
}
std::vector<std::int64_t> integers(const std::vector<Expected>& expected) {
  std::vector<std::int64_t> values;
  for (const Expected& e : expected) values.push_back(static_cast<std::int64_t>(e.bits));
  return values;
}

TEST(Reference, ScansOfIntegersAreExact) {
  namespace cf = chainfold;
  const auto x = cf::input<std::int32_t>("x");
  const std::vector<std::vector<double>> data{{1, 2, 3, 4, 5, 6}};
  using Values = std::vector<std::int64_t>;
  auto scan = [&](const auto& e, std::int64_t segment = 0) {
    return integers(
        expect_all(segment > 0 ? cf::over(cf::segments(segment), e) : cf::over(cf::whole(), e),
                   data, segment));
  };
  EXPECT_EQ(scan(cf::inclusive_sum(x)), (Values{1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(scan(cf::exclusive_sum(x)), (Values{0, 1, 3, 6, 10, 15}));
  EXPECT_EQ(scan(cf::inclusive_sum(x, cf::backward)), (Values{21, 20, 18, 15, 11, 6}));
  EXPECT_EQ(scan(cf::exclusive_sum(x, cf::backward)), (Values{20, 18, 15, 11, 6, 0}));
  EXPECT_EQ(scan(cf::inclusive_sum(x), 3), (Values{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(scan(cf::exclusive_sum(x, 10), 3), (Values{10, 11, 13, 10, 14, 19}));
  EXPECT_EQ(scan(cf::inclusive_sum(x, cf::where(x % 2 == 0))), (Values{0, 2, 2, 6, 6, 12}));
  EXPECT_EQ(scan(cf::inclusive_sum(x) * x - cf::count()), (Values{-5, 0, 12, 34, 69, 120}));
  EXPECT_EQ(scan(cf::exclusive(cf::argmax(x))), (Values{-1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(scan(cf::inclusive(cf::argmin(x), cf::backward), 3), (Values{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(scan(cf::inclusive(cf::count(cf::where(x > 2)), cf::backward)),
            (Values{4, 4, 4, 3, 2, 1}));
}

TEST(Reference, ScansFoldInTheOrderOfTheElements) {
  namespace cf = chainfold;
  const auto x = cf::input<std::int64_t>("x");
  const auto digits = cf::monoid(  // (value, ten to the number of digits)
      "digits", cf::state<std::int64_t, std::int64_t>(0, 1),
      [](auto digit) { return cf::fields(digit, 10); },
      [](auto a, auto b) {
        return cf::fields(cf::get<0>(a) * cf::get<1>(b) + cf::get<0>(b),
                          cf::get<1>(a) * cf::get<1>(b));
      },
      [](auto s) { return cf::get<0>(s); });
  const std::vector<std::vector<double>> data{{1, 2, 3, 4}};
  using Values = std::vector<std::int64_t>;
  auto scan = [&](const auto& e) { return integers(expect_all(cf::over(cf::whole(), e), data)); };
  EXPECT_EQ(scan(cf::inclusive(cf::fold(digits, x))), (Values{1, 12, 123, 1234}));
  EXPECT_EQ(scan(cf::inclusive(cf::fold(digits, x), cf::backward)), (Values{1234, 234, 34, 4}));
  EXPECT_EQ(scan(cf::exclusive(cf::fold(digits, x), cf::backward)), (Values{234, 34, 4, 0}));
}

TEST(Reference, ScansOfFloatsAreBoundedByThePrefix) {
  namespace cf = chainfold;
  const auto x = cf::input<float>("x");
  const std::vector<std::vector<double>> data{{1024, -1024, 0.5, 0.25}};
  const auto sums = expect_all(cf::over(cf::whole(), cf::inclusive_sum(x)), data);
  ASSERT_EQ(sums.size(), 4U);
  for (const Expected& e : sums) EXPECT_TRUE(e.is_sum);
  EXPECT_EQ(sums[1].exact, 0);
  EXPECT_NEAR(sums[1].sum_abs, 2048, 1e-6);
  EXPECT_EQ(mismatch(sums[3], f32(0.75)), "");
  EXPECT_NE(mismatch(sums[3], f32(0.7502)), "");
  EXPECT_NE(mismatch(sums[0], f32(1023.9998)), "");
  const auto means = expect_all(cf::over(cf::whole(), cf::exclusive(cf::mean(x))), data);
  EXPECT_TRUE(means[0].nan);
  EXPECT_EQ(mismatch(means[3], f32(0.5 / 3)), "");
  EXPECT_NE(mismatch(means[3], f32(0.5 / 4)), "");
  const auto spread =
      expect_all(cf::over(cf::whole(), cf::inclusive(cf::variance(x), cf::backward)), data);
  EXPECT_EQ(mismatch(spread[3], f32(0)), "");
  EXPECT_EQ(mismatch(spread[2], f32(0.015625)), "");
  EXPECT_NE(mismatch(spread[2], f32(0.0157)), "");
  const auto product = expect_all(cf::over(cf::whole(), cf::inclusive(cf::product(x))), data);
  EXPECT_EQ(mismatch(product[2], f32(-524288)), "");
  const auto logs = expect_all(cf::over(cf::whole(), cf::inclusive(cf::logsumexp(x))), data);
  EXPECT_EQ(mismatch(logs[1], f32(1024)), "");
  // A sum's value at an element, computed on.
  const auto scaled = expect_all(cf::over(cf::whole(), cf::inclusive_sum(x) * x), data);
  EXPECT_EQ(mismatch(scaled[3], f32(0.1875)), "");
  EXPECT_NE(mismatch(scaled[3], f32(0.19)), "");
}

TEST(Reference, ExactSumsAreExact) {
  ExactSum sum;
  for (double x : {0x1p1000, 1.0, 0x1p-1074, -0x1p1000}) sum.add(x);
  EXPECT_EQ(sum.sum().nearest(), 1.0);
  sum.add(-1.0);
  EXPECT_EQ(sum.sum().nearest(), 0x1p-1074);
}

}  // namespace
}  // namespace chainfold::test
