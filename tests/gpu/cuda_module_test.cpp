// The runtime's CUDA side on a real device: memory, streams, launches, errors, fork.
#include "chainfold/runtime/device/module.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"

namespace chainfold::runtime {
namespace {

constexpr const char* kSource = R"(
extern "C" __global__ void scale(const float* in, float* out, double factor, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * (float)factor;
}
extern "C" __global__ void reverse(int* data, unsigned long long n) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = tile[n - 1 - i];
}
extern "C" __global__ void narrow(int* data, int n) { data[0] = n; }
extern "C" __global__ void nothing() {}
)";

class CudaModuleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "this machine has no CUDA device";
    if (!nvrtc_available()) GTEST_SKIP() << "libnvrtc is not installed";
    context_ = &Context::of(0);
  }
  [[nodiscard]] Cubin image() const {
    return compile_cubin(kSource, {.arch = context_->device().arch()});
  }
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> kNames = {"scale", "reverse", "nothing"};
    return kNames;
  }
  const Context* context_ = nullptr;
};

TEST_F(CudaModuleTest, LaunchesWithSlots) {
  const CudaModule module(*context_, image().image, names());
  const Stream stream(*context_);
  constexpr std::size_t kCount = 100'003;
  PinnedBuffer host(*context_, kCount * sizeof(float));
  const auto values = reinterpret_cast<float*>(host.data());
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1000);
  const DeviceBuffer in(*context_, host.bytes());
  const DeviceBuffer out(*context_, host.bytes());
  copy_to_device(*context_, in.pointer(), host.data(), host.bytes(), stream.handle());
  fill_bytes(*context_, out.pointer(), 0xff, out.bytes(), stream.handle());
  const Event start(*context_, Event::Timing::on);
  const Event end(*context_, Event::Timing::on);
  const std::uint64_t slots[] = {in.pointer(), out.pointer(), std::bit_cast<std::uint64_t>(3.0),
                                 kCount};
  start.record(stream.handle());
  module.launch(module.find("scale"), {.x = (kCount + 255) / 256}, 256, 0, stream.handle(), slots,
                4);
  end.record(stream.handle());
  copy_to_host(*context_, host.data(), out.pointer(), host.bytes(), stream.handle());
  stream.synchronize();
  EXPECT_GE(end.milliseconds_since(start), 0);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(values[i], 3.0F * static_cast<float>(i % 1000)) << i;
}

TEST_F(CudaModuleTest, GivesAKernelMoreSharedMemoryOnRequest) {
  CudaModule module(*context_, image().image, names());
  const std::size_t kernel = module.find("reverse");
  const Stream stream(*context_);
  const auto bytes = static_cast<unsigned>(context_->device().shared_per_block_optin);
  const std::size_t count = bytes / sizeof(int);
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<int>(i);
  const DeviceBuffer data(*context_, bytes);
  copy_to_device(*context_, data.pointer(), values.data(), bytes, stream.handle());
  const std::uint64_t slots[] = {data.pointer(), count};
  EXPECT_THROW(module.launch(kernel, {}, 256, bytes, stream.handle(), slots, 2), DeviceError);
  module.allow_dynamic_shared(kernel, bytes);
  module.launch(kernel, {}, 256, bytes, stream.handle(), slots, 2);
  copy_to_host(*context_, values.data(), data.pointer(), bytes, stream.handle());
  stream.synchronize();
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(values[i], static_cast<int>(count - 1 - i)) << i;
  EXPECT_EQ(module.resident_blocks(kernel, 256, bytes), 1);
  EXPECT_GE(module.resident_blocks(module.find("nothing"), 32, 0), 8);
  EXPECT_THROW(module.allow_dynamic_shared(kernel, bytes + 1024), DeviceError);
}

TEST_F(CudaModuleTest, KnowsItsKernels) {
  const CudaModule module(*context_, image().image, names());
  EXPECT_EQ(module.kernel_count(), 3u);
  EXPECT_EQ(module.name(1), "reverse");
  EXPECT_GT(module.attributes(0).registers, 0);
  EXPECT_EQ(module.attributes(0).local_bytes, 0);
  EXPECT_GE(module.attributes(0).max_threads, 256);
  EXPECT_THROW(static_cast<void>(module.find("absent")), InternalError);
  const std::vector<std::string> absent = {"absent"};
  EXPECT_THROW(CudaModule(*context_, image().image, absent), InternalError);
  const std::uint64_t slot = 0;
  module.launch(module.find("nothing"), {.x = 0}, 32, 0, nullptr, &slot,
                0);  // no blocks, no launch
  if (driver().kernel_get_param_info == nullptr)
    GTEST_SKIP() << "the driver cannot tell parameters";
  const std::vector<std::string> narrow = {"narrow"};
  EXPECT_THROW(CudaModule(*context_, image().image, narrow), InternalError);
  EXPECT_THROW(module.launch(module.find("nothing"), {}, 32, 0, nullptr, &slot, 1), InternalError);
}

TEST_F(CudaModuleTest, LoadsPtxAndRefusesOtherBytes) {
  if (nvrtc_version() > driver().version) {
    GTEST_SKIP() << "the driver reads no PTX of an NVRTC newer than itself";
  }
  const Cubin ptx = compile_cubin(kSource, {.arch = context_->device().arch(), .ptx = true});
  EXPECT_EQ(CudaModule(*context_, ptx.image, names()).kernel_count(), 3u);
  const std::string text = "this is no image";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.c_str());
  try {
    const CudaModule module(*context_, {bytes, text.size() + 1}, names());
    FAIL() << "a text was loaded";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cuLibraryLoadData"), std::string::npos)
        << error.what();
  } catch (const InternalError& error) {  // drivers that load lazily notice at the first kernel
    EXPECT_NE(std::string(error.what()).find("no kernel"), std::string::npos) << error.what();
  }
}

TEST_F(CudaModuleTest, LaunchesFromAThreadWithoutAContext) {
  const CudaModule module(*context_, image().image, names());
  const Stream stream(*context_);
  const DeviceBuffer data(*context_, 4 * sizeof(int));
  std::vector<int> values = {1, 2, 3, 4};
  std::thread([&] {
    copy_to_device(*context_, data.pointer(), values.data(), data.bytes(), stream.handle());
    const std::uint64_t slots[] = {data.pointer(), 4};
    module.launch(module.find("reverse"), {}, 32, 16, stream.handle(), slots, 2);
    copy_to_host(*context_, values.data(), data.pointer(), data.bytes(), stream.handle());
    stream.synchronize();
  }).join();
  EXPECT_EQ(values, (std::vector<int>{4, 3, 2, 1}));
}

TEST_F(CudaModuleTest, SaysHowMuchMemoryWasAskedForAndThere) {
  const auto bytes = static_cast<std::size_t>(context_->device().total_bytes) * 2;
  try {
    const DeviceBuffer buffer(*context_, bytes);
    FAIL() << "twice the memory was allocated";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_NE(std::string(error.what()).find(fmt::format("asked for {} bytes", bytes)),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(DeviceBuffer(*context_, 0).pointer(), 0u);
}

TEST_F(CudaModuleTest, TellsPointersApart) {
  using Kind = PointerInfo::Kind;
  const DeviceBuffer device(*context_, 64);
  const PinnedBuffer pinned(*context_, 64);
  const std::vector<int> pageable(16);
  EXPECT_EQ(pointer_info(*context_, device.data()).kind, Kind::device);
  EXPECT_EQ(pointer_info(*context_, device.data()).device, 0);
  EXPECT_EQ(pointer_info(*context_, pinned.data()).kind, Kind::pinned);
  EXPECT_EQ(pointer_info(*context_, pageable.data()).kind, Kind::pageable);
}

TEST_F(CudaModuleTest, OrdersStreamsByEvents) {
  const Stream first(*context_);
  const Stream second(*context_);
  const Event done(*context_);
  DeviceBuffer data(*context_, 1 << 24);
  fill_bytes(*context_, data.pointer(), 7, data.bytes(), first.handle());
  done.record(first.handle());
  second.wait(done);
  std::vector<unsigned char> values(data.bytes());
  copy_to_host(*context_, values.data(), data.pointer(), data.bytes(), second.handle());
  second.synchronize();
  EXPECT_EQ(values.back(), 7);
  EXPECT_FALSE(is_capturing(*context_, first.handle()));
  DeviceBuffer other = std::move(data);
  EXPECT_EQ(data.pointer(), 0u);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_NE(other.pointer(), 0u);
}

TEST_F(CudaModuleTest, AForkedChildGetsAnError) {
  const DeviceBuffer data(*context_, 64);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      const ContextScope scope(*context_);
    } catch (const DeviceError& error) {
      const bool explained = std::strstr(error.what(), "fork") != nullptr;
      code = error.code() == ErrorCode::device_failed && explained ? 0 : 2;
    }
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace chainfold::runtime
