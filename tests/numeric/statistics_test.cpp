// Statistics through the public interface: known values, and what has none.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "chainfold/tests/support/cpu_test.hpp"

namespace chainfold::test {
namespace {

class Statistics : public CpuTest {
 protected:
  /// One value, of doubles.
  template <class E>
  double of(const E& expression, const std::vector<double>& x, const std::vector<double>& y = {}) {
    const Kernel kernel = compiled(over(whole(), expression));
    if (y.empty()) return std::get<0>(kernel.run<double>({{"x", x}}))[0];
    return std::get<0>(kernel.run<double>({{"x", x}, {"y", y}}))[0];
  }
  decltype(input<double>("x")) x_ = input<double>("x"), y_ = input<double>("y");
  const std::vector<double> few_ = {1, 2, 3, 4, 10}, others_ = {2, 1, 5, 3, 8};
};

TEST_F(Statistics, OfAPopulationAndOfASample) {
  EXPECT_DOUBLE_EQ(of(stddev(x_), few_), std::sqrt(10.0));
  EXPECT_EQ(of(variance(x_, ddof(1)), few_), 12.5);
  EXPECT_EQ(of(variance(x_, ddof(0)), few_), 10);
  EXPECT_DOUBLE_EQ(of(stddev(x_, ddof(1), where(x_ < 10)), few_), std::sqrt(5.0 / 3));
  EXPECT_DOUBLE_EQ(of(covariance(x_, y_), few_, others_), 7);
  EXPECT_DOUBLE_EQ(of(covariance(x_, y_, ddof(1)), few_, others_), 8.75);
  EXPECT_DOUBLE_EQ(of(correlation(x_, y_), few_, others_), 35 / std::sqrt(50.0 * 30.8));
  EXPECT_DOUBLE_EQ(of(skewness(x_), few_), 36 / (10 * std::sqrt(10.0)));
  EXPECT_NEAR(of(kurtosis(x_), few_), 278.8 / 100 - 3, 4 * 0x1p-53);
}

TEST_F(Statistics, AreTheSameWhateverTheUnit) {
  for (const double unit : {0x1p-1060, 0x1p-500, 0x1p900, -0x1p1015}) {
    std::vector<double> scaled = few_;
    for (double& value : scaled) value *= unit;
    EXPECT_DOUBLE_EQ(of(stddev(x_), scaled), of(stddev(x_), few_) * std::fabs(unit)) << unit;
    const double sign = unit > 0 ? 1 : -1;
    EXPECT_EQ(of(correlation(x_, y_), scaled, others_),
              sign * of(correlation(x_, y_), few_, others_));
    EXPECT_EQ(of(skewness(x_), scaled), sign * of(skewness(x_), few_)) << unit;
    EXPECT_EQ(of(kurtosis(x_), scaled), of(kurtosis(x_), few_)) << unit;
  }
  std::vector<double> moved = few_;
  for (double& value : moved) value += 0x1p45;
  EXPECT_EQ(of(stddev(x_), moved), of(stddev(x_), few_));
  EXPECT_EQ(of(correlation(x_, y_), moved, others_), of(correlation(x_, y_), few_, others_));
}

/// Squares of small deviations are below what an f32 holds; their roots are not.
TEST_F(Statistics, OfFloatsAreTheSameWhateverTheUnit) {
  const auto x = input<float>("x"), y = input<float>("y");
  const std::vector<float> plain = {1, 2, 3, 4, 10}, others = {2, 1, 5, 3, 8};
  for (const bool rows : {false, true}) {
    const auto folds = [&](const auto& partition) {
      return over(partition, stddev(x), stddev(x, ddof(1), where(x != y)), correlation(x, y),
                  skewness(x), kurtosis(x));
    };
    const Kernel kernel = compiled(rows ? folds(segments(5)) : folds(whole()));
    for (const int exponent : {-140, -126, -100, -75, -64, 60, 100, 120}) {
      const double unit = std::ldexp(1.0, exponent);
      std::vector<float> scaled;
      for (const float value : plain) scaled.push_back(value * static_cast<float>(unit));
      const auto [deviation, some, correlated, skewed, tailed] =
          kernel.run<float, float, float, float, float>({{"x", scaled}, {"y", others}});
      EXPECT_EQ(deviation[0], static_cast<float>(std::sqrt(10.0) * unit)) << exponent;
      EXPECT_EQ(some[0], static_cast<float>(std::sqrt(12.5) * unit)) << exponent;
      EXPECT_FLOAT_EQ(correlated[0], static_cast<float>(35 / std::sqrt(50.0 * 30.8))) << exponent;
      EXPECT_FLOAT_EQ(skewed[0], static_cast<float>(36 / (10 * std::sqrt(10.0)))) << exponent;
      EXPECT_NEAR(tailed[0], 278.8 / 100 - 3, 0x1p-22) << exponent;
    }
  }
}

TEST_F(Statistics, OfSubnormalsAndMixedIntegersKeepTheirDigits) {
  const double least = 0x1p-1074;
  std::vector<double> x = {0, 20, 61, 41, 7}, y = {1, 2, 3, 1, 5}, tiny = x;
  for (double& value : tiny) value *= least;
  EXPECT_EQ(of(skewness(x_), tiny), of(skewness(x_), x));
  EXPECT_EQ(of(kurtosis(x_), tiny), of(kurtosis(x_), x));
  EXPECT_EQ(of(correlation(x_, y_), tiny, y), of(correlation(x_, y_), x, y));
  EXPECT_EQ(of(stddev(x_), tiny), of(stddev(x_), x) * least);
  const auto a = input<std::int64_t>("a");
  const auto b = input<std::int16_t>("b");
  std::vector<std::int64_t> wide;
  std::vector<std::int16_t> narrow;
  for (std::int16_t i = 0; i < 100; ++i) {
    wide.push_back(std::numeric_limits<std::int64_t>::max() - i);
    narrow.push_back(i);
  }
  const Kernel kernel = compiled(over(whole(), covariance(a, b), correlation(b, a)));
  const auto [cov, cor] = kernel.run<double, double>({{"a", wide}, {"b", narrow}});
  EXPECT_DOUBLE_EQ(cov[0], -833.25);
  EXPECT_DOUBLE_EQ(cor[0], -1);
}

TEST_F(Statistics, HaveNoValueOfTooFewOrEqualElements) {
  const std::vector<double> one = {3}, equal = {3, 3, 3};
  EXPECT_TRUE(std::isnan(of(variance(x_, ddof(5)), few_)));
  EXPECT_TRUE(std::isnan(of(stddev(x_, ddof(1)), one)));
  EXPECT_TRUE(std::isnan(of(covariance(x_, y_, ddof(7)), few_, others_)));
  EXPECT_TRUE(std::isnan(of(correlation(x_, y_), equal, {1, 2, 3})));
  EXPECT_TRUE(std::isnan(of(skewness(x_), equal)) && std::isnan(of(kurtosis(x_), one)));
  EXPECT_TRUE(std::isnan(of(stddev(x_, where(x_ > 100)), few_)));
  EXPECT_EQ(of(stddev(x_), equal), 0);
  EXPECT_EQ(of(variance(x_, ddof(1)), equal), 0);
  EXPECT_EQ(of(covariance(x_, y_), equal, {1, 2, 3}), 0);
  EXPECT_TRUE(std::isnan(of(correlation(x_, y_), {1, 2, HUGE_VAL}, {1, 2, 3})));
}

}  // namespace
}  // namespace chainfold::test
