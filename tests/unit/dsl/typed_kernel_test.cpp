// Kernels that know the types of their outputs.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/cpu_test.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

TEST(TypedComputation, HasTheTypesOfItsOutputs) {
  const auto type_of = [](auto expression) {
    return cf::over(cf::whole(), cf::max(expression), cf::sum(expression), cf::mean(expression),
                    cf::argmin(expression));
  };
  using I64 = std::int64_t;
  using U64 = std::uint64_t;
  const auto same = [&]<class T, class... Out>(std::type_identity<T>,
                                               std::type_identity<std::tuple<Out...>>) {
    static_assert(std::is_same_v<decltype(type_of(cf::input<T>("x"))), TypedComputation<Out...>>);
  };
  const auto check =
      [&]<class T, class Sum, class Mean>(std::type_identity<std::tuple<T, Sum, Mean>>) {
        same(std::type_identity<T>{}, std::type_identity<std::tuple<T, Sum, Mean, I64>>{});
      };
  // The table in README.
  check(std::type_identity<std::tuple<cf::f16, float, float>>{});
  check(std::type_identity<std::tuple<cf::bf16, float, float>>{});
  check(std::type_identity<std::tuple<float, float, float>>{});
  check(std::type_identity<std::tuple<double, double, double>>{});
  check(std::type_identity<std::tuple<std::int8_t, I64, float>>{});
  check(std::type_identity<std::tuple<std::int16_t, I64, float>>{});
  check(std::type_identity<std::tuple<std::int32_t, I64, double>>{});
  check(std::type_identity<std::tuple<I64, I64, double>>{});
  check(std::type_identity<std::tuple<std::uint8_t, U64, float>>{});
  check(std::type_identity<std::tuple<std::uint16_t, U64, float>>{});
  check(std::type_identity<std::tuple<std::uint32_t, U64, double>>{});
  check(std::type_identity<std::tuple<U64, U64, double>>{});
  const auto b = cf::input<bool>("b");
  static_assert(std::is_same_v<decltype(cf::over(cf::whole(), cf::any(b), cf::sum(b), cf::mean(b),
                                                 cf::count(), cf::inclusive_sum(b))),
                               TypedComputation<bool, U64, float, I64, U64>>);
  const Computation old = cf::over(cf::whole(), cf::any(b));
  EXPECT_EQ(old.output_type(0), DType::boolean);
}

class TypedKernels : public CpuTest {
 protected:
  dsl::Input<DType::f32> x_ = cf::input<float>("x");
  std::vector<float> data_{1, 2, 3, -4, 5, 6, 7, 8};
};

TEST_F(TypedKernels, RunWithoutTypes) {
  const auto kernel = cf::compile(
      cf::over(cf::segments(4), cf::mean(x_), cf::argmax(x_), cf::all(x_ > 0)), options_);
  static_assert(
      std::is_same_v<std::remove_cv_t<decltype(kernel)>, TypedKernel<float, std::int64_t, bool>>);
  const auto [mean, where, positive] = kernel.run({{"x", data_}});
  static_assert(std::is_same_v<decltype(mean), const std::vector<float>>);
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 6.5F}));
  EXPECT_EQ(where, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(positive, (std::vector<std::uint8_t>{0, 1}));
  // The same types may be named, by any name of theirs.
  const auto [again, index, all] = kernel.run<float, long long, bool>({{"x", data_}});
  static_assert(std::is_same_v<decltype(index), const std::vector<long long>>);
  EXPECT_EQ(again, mean);
  EXPECT_EQ(index, (std::vector<long long>{2, 3}));
  EXPECT_EQ(all, positive);
  const Bindings bindings{{"x", data_}};
  EXPECT_EQ(std::get<0>(kernel.run(bindings)), mean);
}

TEST_F(TypedKernels, IsAKernel) {
  const Kernel kernel = cf::compile(cf::over(cf::segments(4), cf::sum(x_)), options_);
  EXPECT_EQ(std::get<0>(kernel.run<float>({{"x", data_}})), (std::vector<float>{2, 26}));
  // And a kernel whose types are known becomes one; they are checked when it runs.
  EXPECT_EQ(std::get<0>(TypedKernel<float>(kernel).run({{"x", data_}})),
            (std::vector<float>{2, 26}));
  expect_error<UserError>([&] { TypedKernel<double>(kernel).run({{"x", data_}}); },
                          ErrorCode::type_mismatch, "output 0", {"is float", "asks for double"});
  // Of a computation whose types the compiler does not know comes a plain one.
  const Computation computation = cf::over(cf::whole(), cf::max(x_));
  static_assert(std::is_same_v<decltype(cf::compile(computation, options_)), Kernel>);
  EXPECT_EQ(std::get<0>(cf::compile(computation, options_).run<float>({{"x", data_}})),
            std::vector<float>{8});
}

TEST_F(TypedKernels, RunIntoRanges) {
  const auto kernel =
      cf::compile(cf::over(cf::segments(4), cf::mean(x_), cf::count(), cf::all(x_ > 0)), options_);
  std::vector<float> mean(3, -1);
  std::array<std::int64_t, 2> count{};
  std::array<bool, 2> bools{};
  kernel.run_into({{"x", data_}}, mean, count, bools);
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 6.5F, -1}));
  EXPECT_EQ(count, (std::array<std::int64_t, 2>{4, 4}));
  EXPECT_EQ(bools, (std::array<bool, 2>{false, true}));
  std::vector<std::uint8_t> bytes(2, 7);
  expect_error<UserError>(
      [&] { kernel.run_into({{"x", data_}}, std::span(mean).first(1), count, bytes); },
      ErrorCode::too_small, "output 0", {"room for 1 values, 2 are needed"});
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{7, 7}));
  kernel.run_into({{"x", data_}}, std::span(mean).last(2), count, bytes);
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 0.5F, 6.5F}));
  // The list of outputs is taken as before.
  kernel.run_into({{"x", data_}}, {{mean.data(), 3}, {count.data(), 2}, {bools.data(), 2}});
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 6.5F, 6.5F}));
}

TEST_F(TypedKernels, PlainKernelsRunIntoRangesAndCheckThemWhenTheyRun) {
  const Kernel kernel =
      cf::compile(cf::over(cf::segments(4), cf::mean(x_), cf::all(x_ > 0)), options_);
  std::vector<float> mean(2);
  std::vector<std::uint8_t> bytes(2, 7);
  kernel.run_into({{"x", data_}}, mean, bytes);
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 6.5F}));
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 1}));
  mean = {0, 0};
  kernel.run_into({{"x", data_}}, {std::span(mean), bytes});
  EXPECT_EQ(mean, (std::vector<float>{0.5F, 6.5F}));
  kernel.launch({.elements = 4, .inputs = {{"x", data_}}, .outputs = {mean, bytes}});
  std::vector<double> wide(2);
  expect_error<UserError>([&] { kernel.run_into({{"x", data_}}, wide, bytes); },
                          ErrorCode::type_mismatch, "output 0",
                          {"output 0 is float but the array given holds double"});
  expect_error<UserError>([&] { kernel.run_into({{"x", data_}}, bytes, bytes); },
                          ErrorCode::type_mismatch, "output 0", {"holds std::uint8_t"});
  expect_error<UserError>([&] { kernel.run_into({{"x", data_}}, mean); },
                          ErrorCode::invalid_argument, "outputs", {"2 outputs, 1 were given"});
}

}  // namespace
}  // namespace chainfold::test
