// Code for the processor in two tiers: baseline code first, optimised code in its place later.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/host/background.hpp"
#include "chainfold/runtime/jit/cpu_tiers.hpp"
#include "chainfold/runtime/launch/executable.hpp"
#include "chainfold/tests/support/child_process.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/temporary_folder.hpp"

namespace chainfold::runtime {
namespace {

namespace cf = chainfold;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Stores `value` at args[0][block] for every block; `before` and `local` come before the first
/// one.
std::string storing(int value, const std::string& before = "", const std::string& local = "") {
  return fmt::format(R"(define void @f(i64 %begin, i64 %end, ptr %args) {{
entry:
  {2}
  %out = load ptr, ptr %args
  %slot = getelementptr ptr, ptr %args, i64 1
  %flag = load ptr, ptr %slot
  br label %wait
wait:
  {1}
  br i1 %go, label %loop, label %wait
loop:
  %i = phi i64 [ %begin, %wait ], [ %next, %loop ]
  %at = getelementptr i32, ptr %out, i64 %i
  store i32 {0}, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
)",
                     value, before.empty() ? "%go = add i1 true, false" : before, local);
}
/// Which waits for the flag at args[1] first.
std::string storing_later(int value) {
  return storing(value,
                 "%seen = load atomic i32, ptr %flag acquire, align 4\n"
                 "  %go = icmp ne i32 %seen, 0");
}

std::shared_ptr<const CpuModule> compiled(const std::string& ir, Effort effort) {
  return CpuModule::load(compile_cpu_object(ir, effort).bytes, {"f"});
}

class CpuTiersTest : public testing::Test {
 public:
  void SetUp() override {
    if (const std::string why = test::why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
  /// Baseline code that stores 1, and optimised code that stores 2.
  std::shared_ptr<CpuTiers> tiers(const std::string& baseline = storing(1)) {
    return std::make_shared<CpuTiers>(compiled(baseline, Effort::baseline), 1,
                                      [this](const std::int32_t*) -> CpuTiers::Optimised {
                                        ++made_;
                                        return {.module = compiled(storing(2), Effort::optimised),
                                                .compile_ms = 3};
                                      });
  }
  std::vector<std::int32_t> launched(CpuTiers& tiers, std::int64_t blocks) {
    std::vector<std::int32_t> out(static_cast<std::size_t>(blocks), -1);
    const std::uint64_t args[] = {reinterpret_cast<std::uint64_t>(out.data()),
                                  reinterpret_cast<std::uint64_t>(&flag_)};
    tiers.launch(0, blocks, 1, args);
    return out;
  }
  template <class Condition>
  static bool comes_true(const Condition& condition) {
    for (const auto end = Clock::now() + 20s; Clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  std::atomic<int> made_ = 0;
  std::int32_t flag_ = 0;
};

TEST_F(CpuTiersTest, LaunchesRunOptimisedCodeOnceItIsMade) {
  const auto both = tiers();
  EXPECT_FALSE(both->optimised());
  EXPECT_EQ(launched(*both, 5), std::vector<std::int32_t>(5, 1));
  both->optimise();
  both->optimise();
  EXPECT_TRUE(both->optimised());
  EXPECT_EQ(both->optimise_ms(), 3);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(launched(*both, 5), std::vector<std::int32_t>(5, 2));
}

TEST_F(CpuTiersTest, ALaunchGoesOnWithOptimisedCode) {
  const auto both = tiers(storing_later(1));
  std::vector<std::int32_t> out;
  std::thread launch([&] { out = launched(*both, 5000); });
  both->optimise();
  __atomic_store_n(&flag_, 1, __ATOMIC_RELEASE);
  launch.join();
  ASSERT_EQ(out.size(), 5000U);
  EXPECT_EQ(out.back(), 2);
  for (const std::int32_t value : out) EXPECT_TRUE(value == 1 || value == 2) << value;
}

TEST_F(CpuTiersTest, ARefusedSecondCompilationLeavesBaselineCode) {
  const auto both = std::make_shared<CpuTiers>(
      compiled(storing(1), Effort::baseline), 1, [](const std::int32_t*) -> CpuTiers::Optimised {
        return {.module = compiled("no IR", Effort::optimised)};
      });
  both->run();
  EXPECT_FALSE(both->optimised());
  EXPECT_THROW(both->optimise(), JitError);
  EXPECT_EQ(launched(*both, 3), std::vector<std::int32_t>(3, 1));
}

TEST_F(CpuTiersTest, WhatIsGivenUpIsNotMade) {
  std::int32_t given_up = 1;
  EXPECT_FALSE(compile_cpu_object_beside(storing(2), given_up).has_value());
  given_up = 0;
  EXPECT_TRUE(compile_cpu_object_beside(storing(2), given_up).has_value());
}

TEST_F(CpuTiersTest, TheBackgroundOptimisesWhatLives) {
  const auto lives = tiers();
  std::weak_ptr<CpuTiers> dies;
  {
    const auto both = tiers();
    dies = both;
    run_in_background(both, Clock::now() + 50ms);
  }
  EXPECT_TRUE(dies.expired()) << "a queue owns nothing";
  run_in_background(lives, Clock::now() + 100ms);
  EXPECT_TRUE(comes_true([&] { return lives->optimised(); }));
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(launched(*lives, 4), std::vector<std::int32_t>(4, 2));
}

#ifndef CHAINFOLD_TEST_SANITIZED
// 200,000 bytes, more than a thread of 64 KiB has.
TEST_F(CpuTiersTest, AThreadOfLittleStackWaitsForOptimisedCode) {
  const std::string much = storing(1, "",
                                   "%much = alloca [200000 x i8]\n"
                                   "  %some = getelementptr i8, ptr %much, i64 %begin\n"
                                   "  store volatile i8 1, ptr %some\n");
  const auto both = tiers(much);
  EXPECT_GE(compiled(much, Effort::baseline)->stack_bytes(), 190'000U);
  EXPECT_LT(compiled(storing(1), Effort::baseline)->stack_bytes(), 1000U);
  EXPECT_EQ(launched(*both, 4), std::vector<std::int32_t>(4, 1)) << "this thread has that much";
  std::vector<std::int32_t> out;
  struct Work {
    CpuTiersTest* test;
    CpuTiers* tiers;
    std::vector<std::int32_t>* out;
  } work{this, both.get(), &out};
  const auto start = [](void* argument) -> void* {
    Work& work = *static_cast<Work*>(argument);
    *work.out = work.test->launched(*work.tiers, 4);
    return nullptr;
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{64} << 10), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(out, std::vector<std::int32_t>(4, 2));
}

TEST_F(CpuTiersTest, AForkWhileItWorksLeavesBothProcessesAbleToCompile) {
  const auto x = cf::input<float>("x");
  const std::vector<float> data(1000, 1);
  for (int i = 0; i < 5; ++i) {
    const Kernel kernel = cf::compile(cf::over(cf::segments(100), cf::variance(x) + float(i)),
                                      {.target = cf::target("cpu")});
    std::this_thread::sleep_for(30ms);  // what it takes, about, until it is compiled again
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      const Kernel other = cf::compile(cf::over(cf::segments(50), cf::sum(x) + float(i)),
                                       {.target = cf::target("cpu")});
      const auto [sums] = other.run<float>({{"x", data}});
      const auto [variances] = kernel.run<float>({{"x", data}});
      _exit(sums.at(19) == 50 + float(i) && variances.at(9) == float(i) ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(comes_true([&] { return kernel.stats().optimised == 1; }));
  }
}
#endif

// Where baseline code is on disk, code generation first runs on the background's thread: the
// compiler's tables, made there, must outlive it.
TEST_F(CpuTiersTest, AProcessMayEndAtAnyTime) {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const fs::path filled = folder.path() / "filled", used = folder.path() / "used";
  const auto child = [&](const fs::path& cache, const char* tiered, int milliseconds) {
    int status = -1;
    const std::string text = test::output_of(
        fmt::format(
            "env CHAINFOLD_CACHE=on CHAINFOLD_CACHE_DIR='{}' CHAINFOLD_TIERED={} '{}' ends {}",
            cache.string(), tiered, CHAINFOLD_CACHE_CHILD, milliseconds),
        status);
    EXPECT_EQ(status, 0) << "after " << milliseconds << " ms: " << text;
    EXPECT_NE(text.find("sum=1000"), std::string::npos) << text;
  };
  child(filled, "baseline", 0);
  for (int milliseconds = 0; milliseconds < 140; milliseconds += 10) {
    fs::remove_all(used);
    child(used, "on", milliseconds);  // nothing is there
    fs::remove_all(used);
    fs::copy(filled, used, fs::copy_options::recursive);
    child(used, "on", milliseconds);
  }
}

TEST_F(CpuTiersTest, KernelsTellAndPrepareWaits) {
  const auto x = cf::input<float>("x");
  const cf::Computation computation = cf::over(cf::segments(96), cf::norm(x), cf::argmax(x));
  std::vector<float> data(9600);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 7919 % 1013);
  std::vector<float> norms(100), again(100);
  std::vector<std::int64_t> places(100), places_again(100);
  const auto args = [&](std::vector<float>& n, std::vector<std::int64_t>& p) {
    return LaunchArgs{.elements = 9600, .inputs = {{"x", data}}, .outputs = {{n}, {p}}};
  };
  {
    const Kernel kernel = cf::compile(computation, {.target = cf::target("cpu")});
    kernel.launch(args(norms, places));
    kernel.prepare(args(again, places_again));
    const KernelStats stats = kernel.stats();
    EXPECT_EQ(stats.compiled, 1);
    EXPECT_EQ(stats.optimised, 1);
    EXPECT_EQ(stats.optimise_ms > 0, tiering_of_process() != Tiering::optimised);
    kernel.launch(args(again, places_again));
    EXPECT_EQ(norms, again);
    EXPECT_EQ(places, places_again);
  }
  const Kernel kernel = cf::compile(computation, {.target = cf::target("cpu"), .tiered = false});
  EXPECT_EQ(kernel.stats().optimised, 1);
  EXPECT_EQ(kernel.stats().optimise_ms, 0);
  kernel.launch(args(again, places_again));
  EXPECT_EQ(norms, again);
  EXPECT_EQ(places, places_again);
}

TEST_F(CpuTiersTest, AKernelThatLivesIsOptimised) {
  if (tiering_of_process() != Tiering::both) GTEST_SKIP() << "CHAINFOLD_TIERED is set";
  const Kernel kernel = cf::compile(cf::over(cf::segments(80), cf::norm(cf::input<float>("x"))),
                                    {.target = cf::target("cpu")});
  EXPECT_TRUE(comes_true([&] { return kernel.stats().optimised == 1; }));
  EXPECT_GT(kernel.stats().optimise_ms, 0);
}

// With what the environment says, in processes of their own.
TEST_F(CpuTiersTest, TheEnvironmentChoosesTiers) {
  const auto child = [](const std::string& value) {
    int status = -1;
    return test::output_of(fmt::format("env CHAINFOLD_CACHE=off CHAINFOLD_TIERED={} '{}' tiers",
                                       value, CHAINFOLD_CACHE_CHILD),
                           status);
  };
  EXPECT_NE(child("off").find("optimised=1 later=1"), std::string::npos) << child("off");
  EXPECT_NE(child("on").find("optimised=0 later=1"), std::string::npos) << child("on");
  EXPECT_NE(child("baseline").find("optimised=0 later=0"), std::string::npos) << child("baseline");
  EXPECT_NE(child("never").find("CHAINFOLD_TIERED=never"), std::string::npos) << child("never");
}

class ConcurrentCpuTiers : public CpuTiersTest {};

TEST_F(ConcurrentCpuTiers, LaunchWhileTheyAreOptimised) {
  for (int turn = 0; turn < 4; ++turn) {
    const auto both = tiers();
    run_in_background(both, Clock::now());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200 || !both->optimised(); ++i) {
          if (i == 5 && t == 0) both->optimise();
          std::vector<std::int32_t> out(100, -1);
          std::int32_t flag = 0;
          const std::uint64_t args[] = {reinterpret_cast<std::uint64_t>(out.data()),
                                        reinterpret_cast<std::uint64_t>(&flag)};
          both->launch(0, 100, 1, args);
          for (const std::int32_t value : out) ASSERT_TRUE(value == 1 || value == 2);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made_, turn + 1);
    EXPECT_EQ(launched(*both, 3), std::vector<std::int32_t>(3, 2));
  }
}

}  // namespace
}  // namespace chainfold::runtime
