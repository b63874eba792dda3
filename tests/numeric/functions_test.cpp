// Element-wise functions as users call them: types, special values and values that are exact.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace cf = chainfold;

namespace {

class Functions : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = cf::test::why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

/// f of every element, by a kernel on the CPU.
template <class T, class F>
auto each(const std::vector<T>& x, F f) {
  auto kernel = cf::compile(cf::over(cf::segments(1), cf::max(f(cf::input<T>("x")))),
                            {.target = cf::target("cpu")});
  return std::get<0>(kernel.run({{"x", x}}));
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& right) {
  ASSERT_EQ(got.size(), right.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(right[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else {
      EXPECT_EQ(got[i], right[i]) << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(right[i])) << i;
    }
  }
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(Functions, OfValuesWhoseResultsAreKnown) {
  const std::vector<float> x{-kInf, -2.5f, -0.5f, -0.0f, 0.0f, 0.5f, 1.5f, 2.5f, kInf, kNan};
  expect_same(each(x, [](auto v) { return cf::round(v); }),
              {-kInf, -3, -1, -0.0f, 0, 1, 2, 3, kInf, kNan});
  expect_same(each(x, [](auto v) { return cf::ceil(v); }),
              {-kInf, -2, -0.0f, -0.0f, 0, 1, 2, 3, kInf, kNan});
  expect_same(each(x, [](auto v) { return cf::sign(v); }), {-1, -1, -1, 0, 0, 1, 1, 1, 1, kNan});
  const std::vector<float> ends{-kInf, -0.0f, 0.0f, kInf, kNan};
  expect_same(each(ends, [](auto v) { return cf::tanh(v); }), {-1, -0.0f, 0, 1, kNan});
  expect_same(each(ends, [](auto v) { return cf::erf(v); }), {-1, -0.0f, 0, 1, kNan});
  expect_same(each(ends, [](auto v) { return cf::expm1(v); }), {-1, -0.0f, 0, kInf, kNan});
  expect_same(each(ends, [](auto v) { return cf::log1p(v); }), {kNan, -0.0f, 0, kInf, kNan});
  expect_same(each(ends, [](auto v) { return cf::exp2(v); }), {0, 1, 1, kInf, kNan});
  expect_same(each(ends, [](auto v) { return cf::log2(v); }), {kNan, -kInf, -kInf, kInf, kNan});
  expect_same(each(ends, [](auto v) { return cf::sin(v); }), {kNan, -0.0f, 0, kNan, kNan});
  expect_same(each(ends, [](auto v) { return cf::cos(v); }), {kNan, 1, 1, kNan, kNan});
  expect_same(each(ends, [](auto v) { return cf::rsqrt(v); }), {kNan, -kInf, kInf, 0, kNan});
  expect_same(each(std::vector<double>{0.25, 1, 4, 1024}, [](auto v) { return cf::rsqrt(v); }),
              {2.0, 1.0, 0.5, 0.03125});
  expect_same(each(std::vector<double>{-3, 0, 10}, [](auto v) { return cf::exp2(v); }),
              {0.125, 1.0, 1024.0});
}

TEST_F(Functions, SignsOfIntegers) {
  EXPECT_EQ(each(std::vector<std::int8_t>{-128, -1, 0, 1, 127}, [](auto v) { return cf::sign(v); }),
            (std::vector<std::int32_t>{-1, -1, 0, 1, 1}));
  EXPECT_EQ(
      each(std::vector<std::uint64_t>{0, 1, ~std::uint64_t{0}}, [](auto v) { return cf::sign(v); }),
      (std::vector<std::uint64_t>{0, 1, 1}));
  EXPECT_EQ(
      each(std::vector<std::int64_t>{INT64_MIN, 0, INT64_MAX}, [](auto v) { return cf::sign(v); }),
      (std::vector<std::int64_t>{-1, 0, 1}));
}

TEST_F(Functions, TestsCountAndFilter) {
  const auto count = [](const auto& data, auto test) {
    using T = typename std::decay_t<decltype(data)>::value_type;
    auto x = cf::input<T>("x");
    auto kernel = cf::compile(cf::over(cf::whole(), cf::count(cf::where(test(x)))),
                              {.target = cf::target("cpu")});
    return std::get<0>(kernel.run({{"x", data}}))[0];
  };
  const std::vector<float> x{kInf, -kInf, kNan, 1, 0, std::numeric_limits<float>::max(), kNan};
  EXPECT_EQ(count(x, [](auto v) { return cf::isnan(v); }), 2);
  EXPECT_EQ(count(x, [](auto v) { return cf::isinf(v); }), 2);
  EXPECT_EQ(count(x, [](auto v) { return cf::isfinite(v); }), 3);
  std::vector<cf::f16> half;
  for (const float v : x) half.push_back(cf::f16(v));  // the largest f32 is infinite as f16
  EXPECT_EQ(count(half, [](auto v) { return cf::isinf(v); }), 3);
  EXPECT_EQ(count(half, [](auto v) { return cf::isnan(v); }), 2);
  // A sum of what is a number, in one line.
  auto y = cf::input<double>("y");
  auto kernel = cf::compile(cf::over(cf::whole(), cf::sum(y, cf::where(!cf::isnan(y)))),
                            {.target = cf::target("cpu")});
  EXPECT_EQ(std::get<0>(kernel.run({{"y", std::vector<double>{1, std::nan(""), 2.5}}}))[0], 3.5);
}

// Functions in every tail of a vector, where lanes without elements hold zeros.
TEST_F(Functions, OfAnyNumberOfElements) {
  auto x = cf::input<float>("x");
  auto kernel = cf::compile(cf::over(cf::whole(), cf::sum(cf::log2(x)), cf::sum(cf::cos(x))),
                            {.target = cf::target("cpu")});
  for (const std::size_t n : {1u, 2u, 3u, 7u, 15u, 16u, 17u, 31u, 33u, 100u, 1023u}) {
    const std::vector<float> data(n, 8.0f);
    const auto [logs, cosines] = kernel.run({{"x", data}});
    EXPECT_EQ(logs[0], 3.0f * static_cast<float>(n)) << n;
    EXPECT_NEAR(cosines[0], std::cos(8.0) * static_cast<double>(n),
                5 * 0x1p-24 * static_cast<double>(n))
        << n;
  }
}

}  // namespace
