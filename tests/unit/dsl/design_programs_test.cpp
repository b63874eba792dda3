// clang-format off: the programs keep the form in which they are documented.
// The programs of the design, as they stand there: they must go on compiling, and where a CPU plugin
// is at hand they run and their results are checked.
#include <chainfold/chainfold.hpp>
namespace cf = chainfold;

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "chainfold/runtime/device/device.hpp"
#include "chainfold/tests/support/monoids.hpp"

namespace {

std::vector<cf::f16> some_samples(std::size_t n) {
  std::vector<cf::f16> samples;
  for (std::size_t i = 0; i < n; ++i) {
    samples.emplace_back(static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16);
  }
  return samples;
}

struct Level {
  double mean = 0, rms = 0;
};
Level level_of(const std::vector<cf::f16>& samples, std::size_t begin, std::size_t length) {
  double sum = 0, squares = 0;
  for (std::size_t i = begin; i < begin + length; ++i) {
    const double value = static_cast<float>(samples[i]);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(length);
  return {.mean = sum / count, .rms = std::sqrt(squares / count)};
}

void expect_levels(const std::vector<cf::f16>& samples, const std::vector<float>& mean,
                   const std::vector<float>& rms) {
  ASSERT_EQ(mean.size(), samples.size() / 64);
  ASSERT_EQ(rms.size(), samples.size() / 64);
  for (std::size_t s = 0; s < mean.size(); ++s) {
    const Level level = level_of(samples, s * 64, 64);
    EXPECT_NEAR(mean[s], level.mean, 1e-5) << "segment " << s;
    EXPECT_NEAR(rms[s], level.rms, 1e-5) << "segment " << s;
  }
}

/// Whether kernels can run on the CPU; where the plugin was built, it must be found.
bool can_run_on_cpu() {
  try {
    static_cast<void>(cf::target("cpu"));
    return true;
  } catch (const cf::DeviceError& error) {
#ifdef CHAINFOLD_TEST_CPU
    ADD_FAILURE() << error.what();
#endif
    std::printf("not run: %s\n", error.what());
    return false;
  }
}

/// Whether cf::compile finds a machine by itself.
bool can_run() { return cf::runtime::device_count() > 0 || can_run_on_cpu(); }

TEST(DesignPrograms, MeanAndRmsOfFrames) {
  if (!can_run()) GTEST_SKIP() << "there is no CPU plugin";
  const std::vector<cf::f16> samples = some_samples(64 * 50);

  auto x = cf::input<cf::f16>("x");
  auto frames = cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)));
  cf::Kernel kernel = cf::compile(frames);                   // the GPU if there is one, else the CPU
  auto [mean, rms] = kernel.run<float, float>({{"x", samples}});   // spans in, vectors out

  expect_levels(samples, mean, rms);
}

TEST(DesignPrograms, TpchQ6) {
  auto ship = cf::input<int32_t>("shipdate");  auto disc = cf::input<int64_t>("discount");
  auto qty  = cf::input<int64_t>("quantity");  auto price = cf::input<int64_t>("extendedprice");
  auto hit  = ship >= 8766 && ship < 9131 && disc >= 5 && disc <= 7 && qty < 2400;
  auto q6   = cf::over(cf::whole(), cf::sum(price * disc, cf::where(hit)));

  ASSERT_EQ(q6.outputs(), 1u);
  EXPECT_EQ(q6.output_type(0), cf::DType::i64);
  if (!can_run()) GTEST_SKIP() << "there is no CPU plugin";
  std::vector<int32_t> shipdate;
  std::vector<int64_t> discount, quantity, extendedprice;
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < 10007; ++i) {
    shipdate.push_back(static_cast<int32_t>(8600 + i * 7 % 700));
    discount.push_back(i * 3 % 11);
    quantity.push_back(100 * (1 + i * 13 % 50));
    extendedprice.push_back(90000 + i * 7919 % 10000000);
    if (shipdate.back() >= 8766 && shipdate.back() < 9131 && discount.back() >= 5 &&
        discount.back() <= 7 && quantity.back() < 2400) {
      expected += extendedprice.back() * discount.back();
    }
  }
  auto [revenue] = cf::compile(q6).run<int64_t>({{"shipdate", shipdate},
                                                 {"discount", discount},
                                                 {"quantity", quantity},
                                                 {"extendedprice", extendedprice}});
  ASSERT_EQ(revenue.size(), 1u);
  EXPECT_EQ(revenue[0], expected);
  EXPECT_GT(expected, 0);
}

TEST(DesignPrograms, SegmentSizeKnownAtLaunch) {
  auto x = cf::input<cf::f16>("x");
  auto sized = cf::over(cf::segments(cf::param<int64_t>("S")), cf::max(x));

  EXPECT_EQ(sized.output_type(0), cf::DType::f16);
  if (!can_run()) GTEST_SKIP() << "there is no CPU plugin";
  const std::vector<cf::f16> samples = some_samples(30 * 48);
  const cf::Kernel kernel = cf::compile(sized);
  for (const std::int64_t size : {1, 30, 48, 1440}) {
    auto [most] = kernel.run<cf::f16>({{"x", samples}, {"S", size}});
    ASSERT_EQ(most.size(), samples.size() / static_cast<std::size_t>(size));
    for (std::size_t s = 0; s < most.size(); ++s) {
      float expected = -INFINITY;
      for (std::int64_t i = 0; i < size; ++i) {
        expected = std::fmax(expected, static_cast<float>(samples[s * static_cast<std::size_t>(size) +
                                                                  static_cast<std::size_t>(i)]));
      }
      EXPECT_EQ(static_cast<float>(most[s]), expected) << "S = " << size << ", segment " << s;
    }
  }
  const cf::KernelStats stats = kernel.stats();
  EXPECT_EQ(stats.compiled + stats.reused + stats.from_disk, 4);  // one kernel a size
}

TEST(DesignPrograms, ExplainWithoutAGpu) {
  auto x = cf::input<cf::f16>("x");
  auto frames = cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)));

  testing::internal::CaptureStdout();
  std::puts(cf::explain(frames, cf::target("sm_90")).c_str());
  const std::string text = testing::internal::GetCapturedStdout();

  for (const char* words : {"plan", "mma", "sm_90", "__global__"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is missing in:\n" << text;
  }
}

TEST(DesignPrograms, RunningSums) {
  if (!can_run()) GTEST_SKIP() << "there is no CPU plugin";
  const std::vector<cf::f16> samples = some_samples(256 * 5);
  auto x = cf::input<cf::f16>("x");

  auto running  = cf::over(cf::segments(256), cf::inclusive_sum(x));

  const auto [sums] = cf::compile(running).run<float>({{"x", samples}});
  ASSERT_EQ(sums.size(), samples.size());
  float expected = 0;  // sixteenths: exact
  for (std::size_t i = 0; i < sums.size(); ++i) {
    expected = (i % 256 == 0 ? 0 : expected) + static_cast<float>(samples[i]);
    EXPECT_EQ(sums[i], expected) << "element " << i;
  }
}

TEST(DesignPrograms, AFoldOfOnesOwn) {
  if (!can_run()) GTEST_SKIP() << "there is no CPU plugin";
  const auto my_monoid = cf::test::longest_run();
  std::vector<float> samples;
  for (int i = 0; i < 3 * 4096; ++i) samples.push_back(i % 97 == 13 || i % 1001 == 0 ? -1.0F : 1.0F);
  auto x = cf::input<float>("x");

  auto longest_run = cf::over(cf::segments(4096), cf::fold(my_monoid, x > 0));

  const auto [runs] = cf::compile(longest_run).run<std::int64_t>({{"x", samples}});
  ASSERT_EQ(runs.size(), 3U);
  for (std::size_t s = 0; s < runs.size(); ++s) {
    std::int64_t best = 0, now = 0;
    for (std::size_t i = s * 4096; i < (s + 1) * 4096; ++i) best = std::max(best, now = samples[i] > 0 ? now + 1 : 0);
    EXPECT_EQ(runs[s], best) << "segment " << s;
  }
}

/// The launch of the design, with the names it uses as parameters.
void launch_frames(const cf::Kernel& kernel, std::int64_t n, const cf::f16* d_x, float* d_mean, float* d_rms,
                   std::int64_t segments, void* stream, void* d_tmp) {
  kernel.launch({.elements = n, .inputs = {{"x", d_x}}, .outputs = {{d_mean, segments}, {d_rms, segments}},
                 .stream = stream, .scratch = {d_tmp, kernel.scratch_bytes({.elements = n})}});
}

TEST(DesignPrograms, LaunchOnMemoryOfTheTarget) {
  if (!can_run_on_cpu()) GTEST_SKIP() << "there is no CPU plugin";
  const std::vector<cf::f16> samples = some_samples(64 * 33);
  auto x = cf::input<cf::f16>("x");
  auto frames = cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x)));
  const cf::Kernel kernel = cf::compile(frames, {.target = cf::target("cpu")});
  const auto n = static_cast<std::int64_t>(samples.size());
  std::vector<float> mean(33), rms(33);
  std::vector<std::max_align_t> scratch(
      static_cast<std::size_t>(kernel.scratch_bytes({.elements = n})) / sizeof(std::max_align_t) + 1);

  launch_frames(kernel, n, samples.data(), mean.data(), rms.data(), 33, nullptr, scratch.data());

  expect_levels(samples, mean, rms);
}

}  // namespace
