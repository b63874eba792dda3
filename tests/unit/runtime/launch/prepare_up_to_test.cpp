// prepare(args, Sizes::up_to): launches of no size and alignment up to it compile, allocate or
// wait, as a driver that counts sees it; on a CPU their results are right, too.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

/// Launches of one input x, in memory of the driver that counts.
struct Case {
  const char* name;
  Computation computation;
  DType type;
  std::int64_t most;     ///< elements
  std::int64_t row = 1;  ///< elements are a multiple of it
  bool scans = false;    ///< the output has one value an element
  std::int64_t param = 0;
};

template <class T>
auto x() {
  return cf::input<T>("x");
}

std::vector<Case> cases() {
  constexpr std::int64_t kMany = 1 << 29;
  return {
      {"whole", cf::over(cf::whole(), cf::sum(x<cf::f16>())), DType::f16, kMany},
      {"bytes", cf::over(cf::whole(), cf::sum(x<std::int8_t>())), DType::i8, kMany + 5},
      {"partial", cf::over(cf::segments(5000, cf::Tail::partial), cf::max(x<std::int8_t>())),
       DType::i8, kMany},
      {"long", cf::over(cf::segments(cf::param<std::int64_t>("S")), cf::sum(x<float>())),
       DType::f32, kMany, 65536, false, 65536},
      {"columns", cf::over(cf::columns(1 << 20), cf::max(x<float>())), DType::f32, kMany / 4,
       1 << 20},
      {"scan", cf::over(cf::whole(), cf::inclusive_sum(x<float>())), DType::f32, 1 << 24, 1, true},
  };
}

/// Compiles of a kernel so far, wherever its code came from.
std::int64_t compilations(const Kernel& kernel) {
  const KernelStats stats = kernel.stats();
  return stats.compiled + stats.reused + stats.from_disk;
}

/// "whole: 12 variants; 0 compiled, 0 calls": what `launches` launches of random sizes and
/// alignments cost beside themselves.
std::string cost_of(const Case& c, int launches) {
  void* const library = dlopen(CHAINFOLD_COUNTING_DRIVER, RTLD_NOW);
  const auto count = [&](const char* symbol) {
    using Calls = std::int64_t(const char*);
    return reinterpret_cast<Calls*>(dlsym(library, "counting_driver_calls"))(symbol);
  };
  const runtime::Context& context = runtime::Context::of(0);
  const Kernel kernel =
      cf::compile(c.computation, {.target = cf::target("gpu"), .tuning = Tuning::off});
  const int size = size_of(c.type);
  // The driver that counts runs nothing, so that nothing is touched: any memory will do.
  constexpr std::size_t kMemory = 1 << 20;
  runtime::DeviceBuffer in(context, kMemory), out(context, kMemory), scratch(context, kMemory);
  LaunchArgs args{.elements = c.most};
  if (c.param > 0) args.inputs = {{"S", c.param}};
  kernel.prepare(args, Sizes::up_to);
  const std::int64_t variants = compilations(kernel);

  const std::vector<const char*> slow = {
      "cuLibraryLoadData",   "cuMemAlloc_v2",      "cuMemHostAlloc",      "cuMemFree_v2",
      "cuStreamSynchronize", "cuEventSynchronize", "cuKernelGetFunction", "cuLibraryGetKernel"};
  const auto calls = [&] {
    std::int64_t all = 0;
    for (const char* symbol : slow) all += count(symbol);
    return all;
  };
  const std::int64_t before = calls();
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  fmt::print(stderr, "seed {}", seed);
  for (int i = 0; i < launches; ++i) {
    // Of every order of magnitude, and now and then the largest.
    const auto bits = std::uniform_int_distribution<int>(0, 62)(random);
    std::int64_t n = static_cast<std::int64_t>(random() >> 2U) >> bits;
    n = i % 16 == 0 ? c.most : n % (c.most + 1);
    n -= n % c.row;
    const std::int64_t off = std::uniform_int_distribution<int>(0, 16 / size)(random) * size;
    args.elements = n;
    args.inputs = {Binding("x", static_cast<const std::byte*>(in.data()) + off, c.type)};
    if (c.param > 0) args.inputs.push_back({"S", c.param});
    const DType result = c.computation.graph().node(c.computation.graph().outputs[0]).type;
    // A scan's results may take the place of its elements.
    void* const results = c.scans ? static_cast<std::byte*>(in.data()) + off : out.data();
    args.outputs = Outputs{OutputBinding(results, result, c.most)};
    args.scratch = {};
    const std::int64_t needed = kernel.scratch_bytes(args);
    if (needed > 0) args.scratch = {scratch.data(), needed};
    kernel.launch(args);
  }
  return fmt::format("{}: {} variants; {} compiled, {} calls", c.name,
                     variants <= 16 && variants > 1 ? "few" : fmt::format("{}", variants),
                     compilations(kernel) - variants, calls() - before);
}

class PrepareUpToProcess : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!runtime::nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, which has no driver yet
  }
};

TEST_P(PrepareUpToProcess, LaunchesUpToItCompileNothing) {
  const Case c = cases()[GetParam()];
  EXPECT_EXIT(
      {
        setenv("CHAINFOLD_LIBCUDA", CHAINFOLD_COUNTING_DRIVER, 1);
        fmt::print(stderr, "[{}]", cost_of(c, 400));
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      fmt::format("\\[{}: few variants; 0 compiled, 0 calls\\]", c.name));
}

INSTANTIATE_TEST_SUITE_P(All, PrepareUpToProcess, testing::Range(std::size_t{0}, cases().size()),
                         [](const auto& test) { return cases()[test.param].name; });

TEST(PrepareUpTo, ResultsAreThoseOfEachSizeOnACpu) {
  const auto y = cf::input<std::int32_t>("y");
  const Kernel kernel =
      cf::compile(cf::over(cf::segments(300, cf::Tail::partial), cf::sum(y), cf::max(y)),
                  {.target = cf::target("cpu"), .tuning = Tuning::off});
  constexpr std::int64_t kMost = 5000;
  kernel.prepare({.elements = kMost}, Sizes::up_to);
  const KernelStats prepared = kernel.stats();
  EXPECT_GT(prepared.compiled + prepared.reused + prepared.from_disk, 0);
  EXPECT_EQ(prepared.optimised, prepared.compiled + prepared.reused + prepared.from_disk);
  std::mt19937 random(std::random_device{}());
  std::vector<std::int32_t> data(kMost + 4);
  for (auto& value : data) value = std::uniform_int_distribution<int>(-1000, 1000)(random);
  for (std::int64_t n : {0, 1, 299, 300, 301, 600, 4999, 5000}) {
    const std::int64_t segments = (n + 299) / 300;
    std::vector<std::int64_t> sums(static_cast<std::size_t>(segments) + 1, -7);
    std::vector<std::int32_t> most(static_cast<std::size_t>(segments) + 1, -7);
    const std::int32_t* const from = data.data() + 1;
    kernel.launch({.elements = n,
                   .inputs = {{"y", from}},
                   .outputs = {{sums.data(), segments}, {most.data(), segments}}});
    for (std::int64_t s = 0; s < segments; ++s) {
      const std::int64_t end = std::min(n, 300 * (s + 1));
      std::int64_t sum = 0;
      std::int32_t largest = std::numeric_limits<std::int32_t>::min();
      for (std::int64_t i = 300 * s; i < end; ++i) {
        sum += from[i];
        largest = std::max(largest, from[i]);
      }
      EXPECT_EQ(sums[static_cast<std::size_t>(s)], sum) << n;
      EXPECT_EQ(most[static_cast<std::size_t>(s)], largest) << n;
    }
    EXPECT_EQ(sums.back(), -7) << "a sentinel";
    EXPECT_EQ(most.back(), -7) << "a sentinel";
  }
  const KernelStats after = kernel.stats();
  EXPECT_EQ(after.compiled + after.reused + after.from_disk,
            prepared.compiled + prepared.reused + prepared.from_disk);
}

Kernel scan_of_sixteen_threads() {
  return cf::compile(cf::over(cf::segments(1 << 19), cf::inclusive_sum(x<cf::f16>())),
                     {.target = codegen::cpu_target(16, "sapphirerapids"), .tuning = Tuning::off});
}

/// A CPU's threads scan some numbers of long segments one each, and share fewer and more.
TEST(PrepareUpTo, LaunchesKeepTheirOwnClass) {
  for (const std::int64_t segments : {1, 16, 40, 60, 64, 100, 128}) {
    const std::int64_t n = segments << 19;
    const Kernel fresh = scan_of_sixteen_threads(), prepared = scan_of_sixteen_threads();
    prepared.prepare({.elements = 200 << 19}, Sizes::up_to);
    const std::int64_t before = compilations(prepared);
    fresh.prepare({.elements = n});
    prepared.prepare({.elements = n});
    EXPECT_EQ(prepared.scratch_bytes({.elements = n}), fresh.scratch_bytes({.elements = n}))
        << segments;
    EXPECT_EQ(compilations(prepared), before) << segments;
  }
}

TEST(PrepareUpTo, PlanTellsOfTheLargestClassAndTheWidestLoads) {
  const auto kernel = [] {
    return cf::compile(cf::over(cf::segments(2000), cf::sum(x<double>())),
                       {.target = cf::target("cpu"), .tuning = Tuning::off});
  };
  const Kernel fresh = kernel(), prepared = kernel();
  const std::vector<double> data(2001);
  fresh.prepare({.elements = 2000});
  // Where the memory of one launch lies does not matter to others.
  prepared.prepare({.elements = 2000, .inputs = {{"x", data.data() + 1}}}, Sizes::up_to);
  EXPECT_EQ(prepared.plan_summary(), fresh.plan_summary());
}

TEST(PrepareUpTo, AnotherTimeCompilesNothing) {
  const Kernel kernel = cf::compile(cf::over(cf::whole(), cf::max(x<std::int8_t>())),
                                    {.target = cf::target("cpu"), .tuning = Tuning::off});
  kernel.prepare({.elements = 100'000}, Sizes::up_to);
  const std::int64_t before = compilations(kernel);
  EXPECT_GT(before, 0);
  for (int i = 0; i < 100; ++i) kernel.prepare({.elements = 100'000 - i}, Sizes::up_to);
  EXPECT_EQ(compilations(kernel), before);
}

TEST(PrepareUpToConcurrent, LaunchesRunBesideIt) {
  const Kernel kernel =
      cf::compile(cf::over(cf::segments(300, cf::Tail::partial), cf::sum(x<float>())),
                  {.target = cf::target("cpu"), .tuning = Tuning::off});
  const std::vector<float> data(3001, 1);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (t % 2 == 0) {
        for (std::int64_t n = 100; n <= 3000; n += 700)
          kernel.prepare({.elements = n + t}, Sizes::up_to);
        return;
      }
      for (std::int64_t n = 0; n <= 3000; n += 91 + t) {
        std::vector<float> sums(static_cast<std::size_t>((n + 299) / 300));
        kernel.launch({.elements = n,
                       .inputs = {{"x", data.data() + t % 2}},
                       .outputs = {{sums.data(), static_cast<std::int64_t>(sums.size())}}});
        for (std::size_t s = 0; s < sums.size(); ++s) {
          const auto length = std::min<std::int64_t>(300, n - 300 * static_cast<std::int64_t>(s));
          if (sums[s] != static_cast<float>(length)) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PrepareUpTo, RefusesCountsThatCannotBe) {
  const Kernel kernel = cf::compile(cf::over(cf::whole(), cf::sum(cf::input<float>("x"))),
                                    {.target = cf::target("cpu"), .tuning = Tuning::off});
  const std::int64_t before = kernel.stats().compiled;
  for (const std::int64_t n : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                               std::int64_t{1} << 60, std::numeric_limits<std::int64_t>::max()}) {
    try {
      kernel.prepare({.elements = n}, Sizes::up_to);
      ADD_FAILURE() << n << " was accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(error.input(), "elements");
      EXPECT_NE(std::string(error.what()).find(std::to_string(n)), std::string::npos);
    }
  }
  EXPECT_EQ(kernel.stats().compiled, before);
}

}  // namespace
}  // namespace chainfold::test
