// Blocks that wait for each other on the CPU: in one thread, on the pool, and on more threads than
// there are cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/tests/support/look_back.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

using namespace codegen;

class LlvmLookBack : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
  static std::shared_ptr<const runtime::CpuModule> compile(const Program& program) {
    const LlvmSource source = emit_llvm(program);
    return runtime::CpuModule::compile(source.text, source.symbols);
  }
};
class LlvmLookBackConcurrent : public LlvmLookBack {};

TEST_F(LlvmLookBack, OneThreadRunsTheBlocksInOrder) {
  for (const bool in_place : {false, true}) {
    const Program program = look_back_program({.fan = 5, .in_place = in_place});
    LookBackMemory memory(program, 120 * 32 - 7);
    const auto args = memory.arguments(program);
    const auto module = compile(program);
    for (std::size_t i = 0; i < 2; ++i)
      module->function(i)(0, program.launches[i].grid.evaluate(memory.params), args.data());
    EXPECT_EQ(memory.result(program), memory.expected) << in_place;
  }
}

TEST_F(LlvmLookBackConcurrent, ThePoolRunsThemInAnyOrder) {
  const Program program = look_back_program();
  const auto module = compile(program);
  for (const std::int64_t grain : {1, 1000}) {
    LookBackMemory memory(program, 9000 * 32 + 11, static_cast<std::uint64_t>(grain));
    const auto args = memory.arguments(program);
    for (std::size_t i = 0; i < 2; ++i)
      module->run(i, program.launches[i].grid.evaluate(memory.params), grain, args.data());
    EXPECT_EQ(memory.result(program), memory.expected);
  }
}

/// Threads that wait must give their core away.
TEST_F(LlvmLookBackConcurrent, SixteenThreadsWaitForEachOther) {
  constexpr std::int64_t kThreads = 16;
  const Program program = look_back_program({.in_place = true});
  const auto module = compile(program);
  for (std::uint64_t round = 0; round < 3; ++round) {
    LookBackMemory memory(program, 4000 * 32, round);
    const auto args = memory.arguments(program);
    module->run(0, program.launches[0].grid.evaluate(memory.params), 1, args.data());
    const std::int64_t blocks = program.launches[1].grid.evaluate(memory.params);
    {
      std::vector<std::jthread> threads;
      for (std::int64_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          module->function(1)(blocks * t / kThreads, blocks * (t + 1) / kThreads, args.data());
        });
      }
    }
    EXPECT_EQ(memory.result(program), memory.expected);
    EXPECT_EQ(memory.counter[0], blocks);
    EXPECT_EQ(std::count(memory.flags.begin(), memory.flags.end(), 1),
              blocks + blocks / 32 + blocks / 1024);
  }
}

}  // namespace
}  // namespace chainfold::test
