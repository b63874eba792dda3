// Scans through run() and launch() on the CPU: outputs of every kind of partition lie where they
// should, also where a shorter last segment begins and where outputs are the inputs' memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

class ScanRun : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
    options_.target = cf::target("cpu");
  }
  static std::vector<float> samples(std::size_t n) {
    std::vector<float> samples;  // whole numbers: sums are exact
    for (std::size_t i = 0; i < n; ++i) samples.push_back(static_cast<float>(i * 37 % 101) - 50);
    return samples;
  }
  static std::vector<float> running_back(std::vector<float> x) {
    std::reverse(x.begin(), x.end());
    x = running(x, x.size());
    std::reverse(x.begin(), x.end());
    return x;
  }
  static std::vector<float> running(const std::vector<float>& x, std::size_t segment) {
    std::vector<float> sums;
    for (std::size_t i = 0; i < x.size(); ++i)
      sums.push_back(i % segment == 0 ? x[i] : sums.back() + x[i]);
    return sums;
  }
  /// Memory for outputs that begin some elements behind a line's begin.
  template <class T>
  struct Lines {
    explicit Lines(std::size_t size) : count(size), memory(size + 3 * kLine, kUntouched) {}
    T* at(std::size_t skip) {
      const auto within = reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(T) % kLine;
      return memory.data() + 2 * kLine - within + skip;
    }
    /// What is there, whose neighbours are as they were; forgets it.
    std::vector<T> take(std::size_t skip) {
      T* const begin = at(skip);
      EXPECT_EQ(begin[-1], kUntouched);
      EXPECT_EQ(begin[count], kUntouched);
      const std::vector<T> values(begin, begin + count);
      std::fill(memory.begin(), memory.end(), kUntouched);
      return values;
    }
    static constexpr std::size_t kLine = 64 / sizeof(T);
    static constexpr T kUntouched = -12345;
    std::size_t count;
    std::vector<T> memory;
  };
  static std::vector<float> behind_a_line(const Kernel& kernel, const std::vector<float>& x,
                                          std::size_t skip) {
    Lines<float> lines(x.size());
    kernel.run_into({{"x", x}}, {{lines.at(skip), x.size()}});
    return lines.take(skip);
  }
  Options options_;
  dsl::Input<DType::f32> x_ = cf::input<float>("x");
};

TEST_F(ScanRun, AShorterLastSegmentFollowsTheOthers) {
  const std::vector<float> x = samples(1050);
  const Kernel kernel =
      cf::compile(cf::over(cf::segments(100, Tail::partial), cf::inclusive_sum(x_)), options_);
  const auto [sums] = kernel.run<float>({{"x", x}});
  EXPECT_EQ(sums, running(x, 100));
}

TEST_F(ScanRun, OutputsMayBeTheInputs) {
  const std::vector<float> x = samples(1050);
  const Kernel kernel =
      cf::compile(cf::over(cf::segments(100, Tail::partial), cf::inclusive_sum(x_)), options_);
  std::vector<float> memory = x;
  kernel.run_into({{"x", memory}}, {{memory.data(), memory.size()}});
  EXPECT_EQ(memory, running(x, 100));

  // Off a 16-byte boundary, with room around.
  memory.assign(1052, -1.0F);
  std::copy(x.begin(), x.end(), memory.begin() + 1);
  const float* const in = memory.data() + 1;
  LaunchArgs args{.elements = 1050, .inputs = {{"x", in}}, .outputs = {{memory.data() + 1, 1050}}};
  std::vector<double> scratch(static_cast<std::size_t>(kernel.scratch_bytes(args)) / 8 + 2);
  args.scratch = {scratch.data(), scratch.size() * 8};
  kernel.launch(args);
  EXPECT_EQ(memory.front(), -1.0F);
  EXPECT_EQ(memory.back(), -1.0F);
  EXPECT_EQ(std::vector<float>(memory.begin() + 1, memory.end() - 1), running(x, 100));
}

TEST_F(ScanRun, OffsetsFromAnInitialValue) {
  auto length = cf::input<std::int32_t>("length");
  const Kernel kernel = cf::compile(
      cf::over(cf::whole(), cf::exclusive_sum(length, cf::param<std::int64_t>("base"))), options_);
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> expected;
  std::int64_t at = 1000;
  for (int i = 0; i < 70001; ++i) {
    lengths.push_back(i % 17);
    expected.push_back(at);
    at += lengths.back();
  }
  const auto [offsets] =
      kernel.run<std::int64_t>({{"length", lengths}, {"base", std::int64_t{1000}}});
  EXPECT_EQ(offsets, expected);
}

// Outputs that are stored past the caches, that begin with a line or within one and end within one.
TEST_F(ScanRun, LargeOutputsMayEndAnywhere) {
  for (const char* plan : {"", "scan_run warps=1 depth=8 blocks=0 bytes=0 simt"}) {
    for (const std::size_t rest : {5, 300}) {
      const std::vector<float> x = samples((std::size_t{33} << 18) + rest);
      Options options = options_;
      options.plan = plan;
      for (const bool backward : {false, true}) {
        const Kernel kernel =
            cf::compile(backward ? cf::over(cf::whole(), cf::inclusive_sum(x_, cf::backward))
                                 : cf::over(cf::whole(), cf::inclusive_sum(x_)),
                        options);
        const std::vector<float> expected = backward ? running_back(x) : running(x, x.size());
        for (const std::size_t skip : {0, 3})
          EXPECT_TRUE(behind_a_line(kernel, x, skip) == expected) << plan << rest << skip;
      }
    }
  }
}

TEST_F(ScanRun, LargeOutputsMayHaveSegmentsThatBeginAnywhere) {
  for (const std::size_t segment : {385, 777, 1001, 1024, 5001, 200003}) {
    const std::vector<float> x = samples(segment * ((std::size_t{33} << 18) / segment));
    for (const bool backward : {false, true}) {
      const auto size = static_cast<std::int64_t>(segment);
      const Kernel kernel =
          cf::compile(backward ? cf::over(cf::segments(size), cf::inclusive_sum(x_, cf::backward))
                               : cf::over(cf::segments(size), cf::inclusive_sum(x_)),
                      options_);
      std::vector<float> expected = running(x, segment);
      if (backward) {
        for (std::size_t at = 0; at < x.size(); at += segment) {
          const auto first = static_cast<std::ptrdiff_t>(at), last = first + size;
          const std::vector<float> back = running_back({x.begin() + first, x.begin() + last});
          std::copy(back.begin(), back.end(), expected.begin() + first);
        }
      }
      for (const std::size_t skip : {0, 3})
        EXPECT_TRUE(behind_a_line(kernel, x, skip) == expected) << segment << backward << skip;
    }
  }
}

// Lines of both outputs are at the same elements, or not.
TEST_F(ScanRun, LargeOutputsOfTwoSizesMayBeginAnywhere) {
  constexpr std::size_t kElements = (std::size_t{33} << 18) + 77;
  const std::vector<float> x = samples(kElements), sums = running(x, kElements);
  const std::vector<double> wide(sums.begin(), sums.end());
  const auto sum = cf::inclusive_sum(x_);
  const Kernel kernel = cf::compile(cf::over(cf::whole(), cf::cast<double>(sum), sum), options_);
  Lines<double> first(kElements);
  Lines<float> second(kElements);
  for (const std::size_t skip : {0, 3, 5}) {
    for (const std::size_t other : {skip, skip + 2}) {
      kernel.run_into({{"x", x}}, {{first.at(skip), kElements}, {second.at(other), kElements}});
      EXPECT_TRUE(first.take(skip) == wide) << skip << other;
      EXPECT_TRUE(second.take(other) == sums) << skip << other;
    }
  }
}

// Four launches of unequal length, the second of nothing, are one scan, forward and backward, and
// a fold beside it is that of all so far. The last one is of another class of sizes.
TEST_F(ScanRun, GoesOnFromLaunchToLaunch) {
  constexpr int kLaunches = 4;
  constexpr std::int64_t kCuts[kLaunches + 1] = {0, 33333, 33333, 100001, 2600001};
  const std::vector<float> x = samples(kCuts[kLaunches]);
  for (const bool backward : {false, true}) {
    const Computation computation =
        backward ? cf::over(cf::whole(), cf::inclusive_sum(x_, cf::backward), cf::max(x_))
                 : cf::over(cf::whole(), cf::inclusive_sum(x_), cf::max(x_));
    const Kernel kernel = cf::compile(computation, options_);
    std::vector<float> sums(x.size(), -1), largest(1, -1);
    const auto words = static_cast<std::size_t>(kernel.carry_bytes()) / 8 + 2;
    ASSERT_GT(kernel.carry_bytes(), 0);
    std::vector<double> carries[2] = {std::vector<double>(words), std::vector<double>(words)};
    for (int launch = 0; launch < kLaunches; ++launch) {
      const int piece = backward ? kLaunches - 1 - launch : launch;
      const std::int64_t first = kCuts[piece], count = kCuts[piece + 1] - first;
      LaunchArgs args{.elements = count,
                      .inputs = {{"x", x.data() + first}},
                      .outputs = {{sums.data() + first, count}, {largest.data(), 1}}};
      std::vector<double> scratch(static_cast<std::size_t>(kernel.scratch_bytes(args)) / 8 + 2);
      args.scratch = {scratch.data(), scratch.size() * 8};
      if (launch > 0) args.carry_in = {carries[launch % 2].data(), kernel.carry_bytes()};
      args.carry_out = {carries[1 - launch % 2].data(), kernel.carry_bytes()};
      kernel.launch(args);
    }
    EXPECT_EQ(sums, backward ? running_back(x) : running(x, x.size()))
        << (backward ? "backward" : "forward");
    EXPECT_EQ(largest[0], *std::max_element(x.begin(), x.end()));
  }
}

}  // namespace
}  // namespace chainfold::test
