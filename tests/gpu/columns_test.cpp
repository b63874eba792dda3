// Columns and strides on the GPU: through run(), which leaves gaps behind on the host, and through
// launch(), whose kernels step over them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "chainfold/codegen/choose/space.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

class GpuColumns : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// Runs the cases side by side: most of their time goes to the compiler and the reference.
  static void expect_right(const char* name, const std::vector<DeviceCase>& cases) {
    const TestProgram& tested = program(name);
    std::vector<std::future<Verdict>> verdicts;
    for (const DeviceCase& what : cases) {
      verdicts.push_back(std::async(std::launch::async,
                                    [&tested, what] { return check_on_device(tested, what); }));
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(tested.name + ": " + words(cases[i]));
      try {
        const Verdict verdict = verdicts[i].get();
        EXPECT_EQ(verdict.problems, "");
        EXPECT_GT(verdict.values, 0);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

class GpuColumnShapes : public GpuColumns, public testing::WithParamInterface<const char*> {};

TEST_P(GpuColumnShapes, AgreeWithTheReference) {
  const TestProgram& tested = program(GetParam());
  for (const std::int64_t count : {1, 3, 31, 32, 33, 1000, 1002, 1024, 4099}) {
    std::vector<DeviceCase> cases;
    for (const std::int64_t rows : {1, 7, 1000}) {
      const std::size_t turn = static_cast<std::size_t>(count + rows);
      DeviceCase what{.segment = count,
                      .elements = count * rows,
                      .fill = tested.fills[turn % tested.fills.size()],
                      .seed = turn,
                      .columns = true};
      cases.push_back(what);
      what.shift = 1;
      what.through_run = false;
      if (rows == 7) cases.push_back(what);
      what.shift = 0;
      what.through_run = true;
      // Rows that stay aligned, and rows that do not.
      what.gaps = {16 - count % 16, 32 - count % 16};
      cases.push_back(what);
      what.gaps = {1, 0};
      if (rows == 1000) cases.push_back(what);
    }
    expect_right(GetParam(), cases);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuColumnShapes,
                         testing::Values("sum_f16", "sum_f32", "sum_i8", "sum_f64", "arg_folds_f32",
                                         "longest_run_f32", "two_sums_f16", "flags_bool"),
                         [](const auto& info) { return std::string(info.param); });

/// Every program is one of these groups', which run side by side.
constexpr std::size_t kGroups = 16;
class GpuColumnsOfPrograms : public GpuColumns, public testing::WithParamInterface<std::size_t> {};

TEST_P(GpuColumnsOfPrograms, AreRight) {
  std::size_t turn = 0;
  for (const TestProgram& tested : programs()) {
    if (++turn % kGroups != GetParam()) continue;
    constexpr std::int64_t kCounts[] = {24, 31, 100, 256, 264, 1000, 1003};
    const std::int64_t count = kCounts[turn % std::size(kCounts)];
    DeviceCase what{.segment = count,
                    .elements = count * 301,
                    .fill = tested.fills[turn % tested.fills.size()],
                    .seed = turn,
                    .columns = true};
    if (turn % 3 == 0) what.gaps = {8, 1};
    expect_right(tested.name.c_str(), {what});
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuColumnsOfPrograms, testing::Range<std::size_t>(0, kGroups));

TEST_F(GpuColumns, SegmentsWithGaps) {
  for (const char* name : {"sum_f16", "sum_f32", "sum_i8", "sum_f64", "frames", "arg_folds_f32",
                           "longest_run_f32", "q6"}) {
    std::vector<DeviceCase> cases;
    for (const std::int64_t segment : {1, 7, 8, 16, 33, 64, 100, 256, 1000, 4096, 150'001}) {
      for (const std::int64_t gap : {1, 8, 32}) {
        cases.push_back({.segment = segment,
                         .elements = segment * (segment < 300 ? 2085 : 5),
                         .fill = program(name).fills[cases.size() % program(name).fills.size()],
                         .seed = cases.size() + 1,
                         .gaps = {gap, 0, 3}});
      }
    }
    cases.push_back({.segment = 100, .elements = 1033, .tail = true, .gaps = {28, 4}});
    expect_right(name, cases);
  }
}

TEST_F(GpuColumns, WithoutRowsAreIdentities) {
  auto x = cf::input<float>("x");
  const cf::Kernel kernel =
      cf::compile(cf::over(cf::columns(300), cf::sum(x), cf::count(), cf::min(x)));
  const std::vector<float> none;
  const auto [sum, count, least] = kernel.run<float, std::int64_t, float>({{"x", none}});
  EXPECT_EQ(sum, std::vector<float>(300, 0.0F));
  EXPECT_EQ(count, std::vector<std::int64_t>(300, 0));
  EXPECT_EQ(least, std::vector<float>(300, HUGE_VALF));
}

/// More data than a chunk: cut between rows (tall) and between columns (wide), with and without
/// gaps; whole numbers, so that every order of summation is exact.
TEST_F(GpuColumns, InChunks) {
  struct Size {
    std::int64_t columns, rows, gap;
  };
  auto x = cf::input<float>("x");
  auto value = [](std::int64_t row, std::int64_t column) {
    return static_cast<float>((row * 7 + column * 3 + (row >> 9)) % 61 - 30);
  };
  for (const auto& [columns, rows, gap] :
       {Size{1000, 60'000, 0}, Size{1001, 60'000, 0}, Size{1000, 60'000, 24}, Size{250'007, 120, 0},
        Size{1 << 20, 40, 0}, Size{1 << 20, 40, 64}}) {
    SCOPED_TRACE(fmt::format("{} columns, {} rows, gap {}", columns, rows, gap));
    const std::int64_t stride = columns + gap;
    std::vector<float> data(static_cast<std::size_t>((rows - 1) * stride + columns), NAN);
    std::vector<double> sums(static_cast<std::size_t>(columns), 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        data[static_cast<std::size_t>(r * stride + c)] = value(r, c);
        sums[static_cast<std::size_t>(c)] += value(r, c);
      }
    }
    const cf::Kernel kernel =
        cf::compile(cf::over(cf::columns(columns), cf::sum(x), cf::argmax(x)));
    const auto [sum, most] =
        kernel.run<float, std::int64_t>({cf::Binding("x", data).stride(gap == 0 ? 0 : stride)});
    for (std::int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(sum[static_cast<std::size_t>(c)], sums[static_cast<std::size_t>(c)]) << c;
      const std::int64_t at = most[static_cast<std::size_t>(c)];
      for (std::int64_t r = 0; r < rows; ++r) {
        if (r < at) {
          ASSERT_LT(value(r, c), value(at, c)) << c;
        } else {
          ASSERT_LE(value(r, c), value(at, c)) << c;
        }
      }
    }
  }
}

TEST_F(GpuColumns, RepeatToTheBit) {
  const Computation computation = program("variance_f32").over(cf::columns(1000));
  const Column data = make_column(DType::f32, 1000 * 3001, Fill::normal, 4);
  const cf::Kernel kernel = cf::compile(computation);
  const Bindings bindings{{"x", data.data(), DType::f32, data.count()}};
  const auto first = kernel.run<float>(bindings);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(kernel.run<float>(bindings), first);
}

class GpuColumnPlans : public GpuColumns, public testing::WithParamInterface<std::int64_t> {};

/// Every plan of the space gives what the default gives.
TEST_P(GpuColumnPlans, AllAgree) {
  auto x = cf::input<cf::f16>("x");
  const std::int64_t count = GetParam(), rows = 1'500'000 / count;
  const Computation computation =
      cf::over(cf::columns(count), cf::sum(x), cf::argmin(x), cf::max(x));
  const Column data = make_column(DType::f16, count * rows, Fill::whole, 8);
  const Bindings bindings{{"x", data.data(), DType::f16, data.count()}};
  const cf::Kernel standard = cf::compile(computation);
  const auto expected = standard.run<float, std::int64_t, cf::f16>(bindings);
  for (const codegen::PlanChoice& choice :
       plan_space(computation.graph(), standard.target(), {.segment = count})) {
    Options options;
    options.plan = to_text(choice);
    const auto actual =
        cf::compile(computation, options).run<float, std::int64_t, cf::f16>(bindings);
    EXPECT_EQ(std::get<0>(actual), std::get<0>(expected)) << options.plan;
    EXPECT_EQ(std::get<1>(actual), std::get<1>(expected)) << options.plan;
    for (std::size_t c = 0; c < std::get<2>(actual).size(); ++c) {
      ASSERT_EQ(static_cast<float>(std::get<2>(actual)[c]),
                static_cast<float>(std::get<2>(expected)[c]))
          << options.plan;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuColumnPlans, testing::Values(24, 1001, 16384),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace chainfold::test
