// Scans of the whole input while threads are taken off their cores at random, as a busy system
// does: others fold the tiles of those that are late, and every bit stays.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

std::atomic<int> held_up{0};

/// Up to two milliseconds.
void hold_up(int) {
  static thread_local unsigned state = 12345;
  state = state * 1664525U + 1013904223U;
  const timespec time{0, static_cast<long>(state >> 16) % 2000 * 1000};
  nanosleep(&time, nullptr);
  ++held_up;
}

/// Holds up this process's threads, one after the other, until it is gone.
class HoldUp {
 public:
  HoldUp() {
    // For good: a signal may still be on its way to a thread when nobody sends any more.
    struct sigaction action = {};
    action.sa_handler = hold_up;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    thread_ = std::jthread([](const std::stop_token& stop) {
      sigset_t own;
      sigemptyset(&own);
      sigaddset(&own, SIGUSR1);
      pthread_sigmask(SIG_BLOCK, &own, nullptr);
      std::mt19937 random(1);
      while (!stop.stop_requested()) {
        std::vector<int> tasks;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
          tasks.push_back(std::stoi(task.path().filename().string()));
        const int picked = tasks[random() % tasks.size()];
        // One that has ended meanwhile is nobody's.
        syscall(SYS_tgkill, getpid(), picked, SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(100 + random() % 100));
      }
    });
  }
  HoldUp(const HoldUp&) = delete;
  HoldUp& operator=(const HoldUp&) = delete;

 private:
  std::jthread thread_;  // stops and is joined
};

struct Free {
  void operator()(float* floats) const { std::free(floats); }
};
std::unique_ptr<float, Free> floats(std::size_t count) {
  constexpr std::size_t kLine = 64;
  return std::unique_ptr<float, Free>(
      static_cast<float*>(std::aligned_alloc(kLine, count * sizeof(float))));
}

// More than 32 MiB, so that outputs pass the caches by, which is where threads help.
constexpr std::size_t kElements = (std::size_t{9} << 20) + 1040;

TEST(HeldUp, EveryRunGivesTheSameBits) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  const auto sums = inclusive_sum(input<float>("x"));
  const auto x = floats(kElements), y = floats(kElements);
  std::mt19937_64 random(2026'11'28);
  const std::span<const float> in(x.get(), kElements);
  std::vector<float> expected(kElements);
  for (const bool exact : {true, false}) {
    // Of whole numbers sums are exact, of fractions another order would round otherwise.
    float sum = 0;
    for (std::size_t i = 0; i < kElements; ++i) {
      const auto whole = static_cast<float>(static_cast<int>(random() % 5) - 2);
      x.get()[i] = exact ? whole : std::ldexp(whole + 0.1F, static_cast<int>(random() % 20) - 10);
      expected[i] = sum += x.get()[i];
    }
    for (const char* plan :
         {"", "look_ahead warps=1 depth=8 near=1 tile=4 stages=2 blocks=1 bytes=0 simt",
          "look_back warps=1 depth=8 staged=0 tile=16 blocks=0 bytes=0 simt"}) {
      SCOPED_TRACE(plan);
      const Kernel kernel = compile(over(whole(), sums), {.target = target("cpu"), .plan = plan});
      Outputs outputs;
      outputs.push_back(OutputBinding(y.get(), static_cast<std::int64_t>(kElements)));
      const auto run = [&] {
        std::fill_n(y.get(), kElements, std::nanf(""));
        kernel.run_into({{"x", in}}, outputs);
      };
      run();
      if (!exact) std::copy_n(y.get(), kElements, expected.begin());
      const HoldUp hold;
      for (int round = 0; round < 6; ++round) {
        run();
        ASSERT_EQ(std::memcmp(y.get(), expected.data(), kElements * sizeof(float)), 0)
            << (exact ? "whole numbers" : "fractions") << ", round " << round;
      }
    }
  }
  EXPECT_GT(held_up, 0);
}

}  // namespace
}  // namespace chainfold::test
