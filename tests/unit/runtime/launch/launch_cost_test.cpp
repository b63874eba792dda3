// What a launch costs the host: nothing is allocated for it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

// Sanitizers have allocators of their own, which a replacement would hide.
#if !defined(CHAINFOLD_TEST_SANITIZED)

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// Not inlined: GCC would see new's memory given to free() and warn.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace chainfold::test {
namespace {

TEST(LaunchCost, NothingIsAllocated) {
  if (!runtime::cpu_plugin_available()) GTEST_SKIP() << "no CPU plugin";
  // Names longer than a string keeps within itself; a parameter; a shorter last segment.
  const auto x = input<float>("a name longer than fifteen characters");
  const auto scale = param<float>("the factor of every element there");
  const Kernel kernel = compile(over(segments(64, Tail::partial), sum(x * scale), max(x)),
                                {.target = target("cpu"), .tuning = Tuning::off});
  const std::vector<float> data(64 * 3 + 10, 1);
  std::vector<float> sums(4), most(4);
  LaunchArgs args{.elements = data.size(),
                  .inputs = {{"a name longer than fifteen characters", data},
                             {"the factor of every element there", 2.0F}},
                  .outputs = {{sums.data(), 4}, {most.data(), 4}}};
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_bytes(args)) + 256);
  void* place = scratch.data();
  std::size_t room = scratch.size();
  args.scratch = {std::align(256, 1, place, room), kernel.scratch_bytes(args)};
  kernel.launch(args);
  const std::size_t before = allocations;
  kernel.launch(args);
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(sums[0], 128);
  EXPECT_EQ(sums[3], 20);
  // The count is one: what is allocated on purpose is seen.
  const auto seen = std::make_unique<int>(1);
  EXPECT_EQ(allocations - before, 1U);
}

/// Arrays of scans are held against each other by their addresses, not by their names.
TEST(LaunchCost, NothingIsAllocatedForScans) {
  if (!runtime::cpu_plugin_available()) GTEST_SKIP() << "no CPU plugin";
  const auto x = input<float>("a name longer than fifteen characters");
  const Kernel kernel = compile(over(segments(64), inclusive_sum(x)),
                                {.target = target("cpu"), .tuning = Tuning::off});
  const std::vector<float> data(64 * 3, 1);
  std::vector<float> sums(data.size());
  const LaunchArgs args{.elements = data.size(),
                        .inputs = {{"a name longer than fifteen characters", data}},
                        .outputs = {{sums.data(), sums.size()}}};
  kernel.launch(args);
  const std::size_t before = allocations;
  kernel.launch(args);
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(sums[127], 64);
}

}  // namespace
}  // namespace chainfold::test

#endif
