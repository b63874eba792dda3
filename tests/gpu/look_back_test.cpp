// Blocks that wait for each other on a real device.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/runtime/device/module.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/look_back.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

class GpuLookBack : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    context_ = &runtime::Context::of(0);
  }

  /// Runs the scan `repeats` times over the same memory and looks at the last result.
  void expect_scan(const LookBack& shape, std::int64_t elements, int repeats) const {
    const runtime::ContextScope scope(*context_);
    const codegen::Program program = look_back_program(shape);
    const int arch = context_->device().arch();
    const codegen::CudaSource source = codegen::emit_cuda(program, arch);
    const runtime::CudaModule module(
        *context_, runtime::compile_cubin(source.text, {.arch = arch}).image, source.kernels);

    LookBackMemory memory(program, elements);
    std::vector<std::unique_ptr<DeviceArray>> arrays;
    std::vector<std::uint64_t> slots;
    for (const codegen::InterpBuffer& buffer : memory.buffers(program)) {
      const auto index = arrays.size();
      const auto bytes = static_cast<std::size_t>(buffer.elements) *
                         static_cast<std::size_t>(size_of(program.buffers[index].type));
      arrays.push_back(std::make_unique<DeviceArray>(*context_, bytes));
      const bool reused = program.in_place && index == 1;
      slots.push_back(reinterpret_cast<std::uintptr_t>(arrays[reused ? 0 : index]->data()));
    }
    slots.insert(slots.end(), memory.params.begin(), memory.params.end());
    arrays[2]->upload(memory.sums.data());
    arrays[3]->upload(memory.flags.data());
    arrays[4]->upload(memory.counter.data());
    const runtime::Stream stream(*context_);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      stream.synchronize();
      arrays[0]->upload(memory.x.data());
      for (std::size_t i = 0; i < program.launches.size(); ++i) {
        const codegen::Launch& launch = program.launches[i];
        module.launch(i, {.x = static_cast<unsigned>(launch.grid.evaluate(memory.params))},
                      static_cast<unsigned>(launch.warps) * codegen::kWarpWidth,
                      static_cast<unsigned>(codegen::shared_layout(launch).bytes), stream.handle(),
                      slots.data(), slots.size());
      }
      stream.synchronize();
      std::vector<std::int64_t> result(memory.x.size());
      arrays[program.in_place ? 0 : 1]->download(result.data());
      ASSERT_EQ(result, memory.expected) << "repeat " << repeat;
    }
    for (const auto& array : arrays) EXPECT_EQ(array->damage(), "");
  }
  const runtime::Context* context_ = nullptr;
};

TEST_F(GpuLookBack, TilesOfOneWarp) {
  for (const std::int64_t elements : {1, 32, 33, 1024, 40'000, 1'000'003})
    expect_scan({}, elements, 5);
}

/// Many more blocks than are resident, so that most wait for blocks that were there before them.
TEST_F(GpuLookBack, TilesOfManyWarps) {
  for (const int warps : {4, 8, 32})
    expect_scan({.warps = warps}, std::int64_t{20'000} * 32 * warps + 17, 5);
}

TEST_F(GpuLookBack, ABlockTakesManyTickets) {
  expect_scan({.warps = 4, .rounds = 7}, 3'000'000, 5);
}

TEST_F(GpuLookBack, InTheInputsMemory) {
  expect_scan({.warps = 4, .in_place = true}, 2'000'001, 5);
}

/// A narrow tree: many levels, and each tile publishes for several of them.
TEST_F(GpuLookBack, ManyLevels) { expect_scan({.fan = 3, .levels = 9}, 15'000 * 32, 5); }

}  // namespace
}  // namespace chainfold::test
