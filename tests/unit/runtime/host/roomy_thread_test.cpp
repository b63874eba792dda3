// Compilations on a thread of the library's own: callers with little stack, errors that cross over.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

/// Runs `work` on a thread with `bytes` of stack, of which the thread's own needs take a part.
template <class Work>
void with_stack(std::size_t bytes, Work work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  const auto start = [](void* argument) -> void* {
    (*static_cast<Work*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}
#ifdef CHAINFOLD_TEST_SANITIZED
constexpr std::size_t kLittle = std::size_t{1} << 20;  // sanitized frames are many times as large
#else
constexpr std::size_t kLittle = std::size_t{64} << 10;
#endif

TEST(RoomyThread, GivesBackWhatWorkReturnsOrThrows) {
  EXPECT_EQ(runtime::roomy([] { return std::string("text"); }), "text");
  int calls = 0;
  runtime::roomy([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  try {
    runtime::roomy([]() -> int { throw UserError(ErrorCode::too_small, "a message", "x"); });
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_small);
    EXPECT_EQ(error.input(), "x");
    EXPECT_STREQ(error.what(), "a message");
  }
}

TEST(RoomyThread, HasRoomAndOneThreadForWorkWithinWork) {
  const auto use = [] {
    std::array<char, (std::size_t{8} << 20)> much;
    std::memset(much.data(), 1, much.size());
    asm volatile("" : : "r"(much.data()) : "memory");
  };
  with_stack(kLittle, [&] { runtime::roomy(use); });
  runtime::roomy([] {
    const auto outer = std::this_thread::get_id();
    runtime::roomy([&] { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
}

TEST(RoomyThread, TakesNoSignalsOfTheProgramAndNoRoundingOfItsCaller) {
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  runtime::roomy([] {
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
    EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
  });
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
  std::fesetround(before);
}

TEST(RoomyThread, AThreadOf64KiBExplainsKernelsForGpus) {
  std::string text;
  with_stack(kLittle, [&] {
    auto x = cf::input<cf::f16>("x");
    text = cf::explain(cf::over(cf::segments(64), cf::mean(x), cf::sqrt(cf::mean(x * x))),
                       cf::target("sm_90"));
  });
  EXPECT_NE(text.find("mma"), std::string::npos);
}

TEST(RoomyThread, AThreadOf64KiBCompilesAndRuns) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<float> data(70'000, 2);
  std::vector<float> sums, runs;
  std::string message;
  with_stack(kLittle, [&] {
    auto x = cf::input<float>("x");
    const auto kernel =
        cf::compile(cf::over(cf::segments(cf::param<std::int64_t>("S"), cf::Tail::partial),
                             cf::sum(cf::sqrt(x * 2)), cf::inclusive_sum(x)),
                    {.target = cf::target("cpu")});
    auto results = kernel.run({{"x", data}, {"S", 1000}});  // compiles
    sums = std::move(std::get<0>(results));
    runs = std::move(std::get<1>(results));
    (void)kernel.explain();
    try {
      kernel.run({{"x", data}, {"S", 0}});
    } catch (const UserError& error) {
      message = error.what();
    }
  });
  EXPECT_EQ(sums, std::vector<float>(70, 2000));
  EXPECT_EQ(runs.at(999), 2000);
  EXPECT_NE(message.find("segment size 'S' is 0"), std::string::npos) << message;
}

TEST(RoomyThread, AThreadOf64KiBTunes) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  std::thread::id here, told;
  std::string plan;
  with_stack(kLittle, [&] {
    here = std::this_thread::get_id();
    Options options{.target = cf::target("cpu")};
    options.tuning = cf::Tuning::measure;
    options.tuning_elements = 100'000;
    options.tuning_seconds = 0.2;
    options.on_tuning = [&](const TuningProgress&) { told = std::this_thread::get_id(); };
    plan = cf::compile(cf::over(cf::segments(100), cf::sum(cf::input<float>("tuned"))), options)
               .plan();
  });
  EXPECT_FALSE(plan.empty());
  EXPECT_EQ(told, here) << "the thread that asked is told";
}

}  // namespace
}  // namespace chainfold::test
