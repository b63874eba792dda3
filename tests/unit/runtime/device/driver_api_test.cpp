#include "chainfold/runtime/device/driver_api.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "chainfold/runtime/device/context.hpp"
#include "chainfold/runtime/device/device.hpp"

// Where the toolkit's header is at hand, our declarations are held against it.
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace chainfold::runtime {
namespace {

/// "code: message" of the DeviceError that loading a driver throws.
std::string refusal(const std::vector<SearchPlace>& places) {
  try {
    load_driver(places);
  } catch (const DeviceError& error) {
    return fmt::format("{}: {}", error_code_name(error.code()), error.what());
  }
  return "it loaded";
}

TEST(DriverApi, NamesThePlacesOfAMissingDriver) {
  const std::string text = refusal({{"the loader's path", {"libno-such-driver.so.1"}, {}},
                                    {"/some/where", {}, "no libcuda.so.1 there"}});
  for (const char* part : {"missing_library: the NVIDIA driver (libcuda.so.1) was not found",
                           "the loader's path: libno-such-driver.so.1",
                           "/some/where: no libcuda.so.1 there", "Fix: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

TEST(DriverApi, RefusesALibraryWithoutTheEntryPoints) {
  const std::string text = refusal({{"here", {"libm.so.6"}, {}}});
  EXPECT_NE(text.find("missing_library"), std::string::npos) << text;
  EXPECT_NE(text.find("libm.so.6 lacks cuInit"), std::string::npos) << text;
}

TEST(DriverApiProcess, AProcessWithoutADriverHasNoDevices) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, where nothing is loaded yet
  EXPECT_EXIT(
      {
        setenv("CHAINFOLD_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
        for (int i = 0; i < 2; ++i) {  // the second call gives the remembered outcome
          try {
            driver();
          } catch (const DeviceError& error) {
            fmt::print(stderr, "[{} {}]", error_code_name(error.code()), error.what());
          }
        }
        try {
          Context::of(0);
        } catch (const DeviceError& error) {
          fmt::print(stderr, "[{}]", error_code_name(error.code()));
        }
        std::exit(driver_available() || device_count() != 0 ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "missing_library the NVIDIA driver.*/nonexistent/libcuda.so.1(.|\n)*"
      "missing_library the NVIDIA driver(.|\n)*\\[missing_library\\]");
}

TEST(DriverApiProcess, TellsTheToolkitsStubFromADriver) {
  const char* home = std::getenv("CUDA_HOME");
  const std::string stub =
      std::string(home != nullptr ? home : "/usr/local/cuda") + "/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(stub)) GTEST_SKIP() << "no toolkit stub at " << stub;
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the stub must not stay in this process
  EXPECT_EXIT(
      {
        fmt::print(stderr, "[{}]", refusal({{"stubs", {stub}, {}}}));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "missing_library: .*is the toolkit's stub");
}

TEST(DriverApi, TurnsResultsIntoErrors) {
  DriverApi api;
  api.get_error_name = [](DriverResult, const char** name) -> DriverResult {
    *name = "CUDA_ERROR_MADE_UP";
    return kDriverSuccess;
  };
  api.get_error_string = [](DriverResult, const char** text) -> DriverResult {
    *text = "a made-up error";
    return kDriverSuccess;
  };
  const auto thrown = [&](DriverResult result) -> DeviceError {
    try {
      throw_driver_error(api, result, "cuMemAlloc", "asked for 12 bytes");
    } catch (const DeviceError& error) {
      return error;
    }
  };
  const DeviceError memory = thrown(kDriverOutOfMemory);
  EXPECT_EQ(memory.code(), ErrorCode::out_of_memory);
  EXPECT_EQ(
      std::string(memory.what()),
      "cuMemAlloc failed: CUDA_ERROR_MADE_UP (2, a made-up error); asked for 12 bytes. Fix: free "
      "device memory, run the input in smaller pieces, or choose a device with more");
  const DeviceError other = thrown(12345);
  EXPECT_EQ(other.code(), ErrorCode::device_failed);
  EXPECT_EQ(std::string(other.what()),
            "cuMemAlloc failed: CUDA_ERROR_MADE_UP (12345, a made-up error); asked for 12 bytes");
  EXPECT_NO_THROW(check(kDriverSuccess, "cuInit"));
}

TEST(DriverApi, DescribesDevicesWhereThereAreSome) {
  if (device_count() == 0) GTEST_SKIP() << "this machine has no CUDA device";
  const DeviceInfo& info = device_info(0);
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.warp_size, 32);
  EXPECT_GE(info.arch(), 50);
  EXPECT_GT(info.sms, 0);
  EXPECT_GT(info.total_bytes, 1 << 28);
  EXPECT_GE(info.shared_per_block_optin, info.shared_per_block);
  EXPECT_THROW(device_info(device_count()), DeviceError);
  EXPECT_THROW(device_info(-1), DeviceError);
}

#if __has_include(<cuda.h>)
/// Whether two types are passed alike: pointers with pointers, numbers with numbers of one size.
template <class A, class B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class Ours, class Theirs>
constexpr bool kSameAbi = false;
template <class R, class... A, class S, class... B>
constexpr bool kSameAbi<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B)) return kAlike<R, S> && (kAlike<A, B> && ...);
  return false;
}();

TEST(DriverApi, MatchesTheToolkitsHeader) {
#define CHAINFOLD_COMPARE(member, symbol, parameters) \
  EXPECT_TRUE((kSameAbi<decltype(DriverApi::member), decltype(&::symbol)>)) << #member;
  CHAINFOLD_DRIVER_REQUIRED(CHAINFOLD_COMPARE)
#if CUDA_VERSION >= 12040
  CHAINFOLD_DRIVER_OPTIONAL(CHAINFOLD_COMPARE)
#endif
#undef CHAINFOLD_COMPARE
  EXPECT_EQ(sizeof(DeviceUuid), sizeof(CUuuid));
  const std::pair<int, int> pairs[] = {
      {kDriverInvalidValue, CUDA_ERROR_INVALID_VALUE},
      {kDriverOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {kDriverNotInitialized, CUDA_ERROR_NOT_INITIALIZED},
      {kDriverDeinitialized, CUDA_ERROR_DEINITIALIZED},
      {kDriverStubLibrary, CUDA_ERROR_STUB_LIBRARY},
      {kDriverNoDevice, CUDA_ERROR_NO_DEVICE},
      {kDriverNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {kDriverUnsupportedPtx, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {kDriverInvalidImage, CUDA_ERROR_INVALID_IMAGE},
      {kDriverIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS},
      {kDriverLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
      {kDriverMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS},
      {kDriverLaunchFailed, CUDA_ERROR_LAUNCH_FAILED},
      {kDriverSystemMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH},
      {kDriverCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
      {int(DeviceAttribute::max_threads_per_block), CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {int(DeviceAttribute::shared_per_block), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
      {int(DeviceAttribute::warp_size), CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {int(DeviceAttribute::sm_count), CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {int(DeviceAttribute::l2_bytes), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {int(DeviceAttribute::max_threads_per_sm),
       CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {int(DeviceAttribute::capability_major), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {int(DeviceAttribute::capability_minor), CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {int(DeviceAttribute::shared_per_sm),
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {int(DeviceAttribute::registers_per_sm),
       CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
      {int(DeviceAttribute::shared_per_block_optin),
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {int(DeviceAttribute::max_blocks_per_sm), CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
      {int(DeviceAttribute::reserved_shared_per_block),
       CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
      {int(FunctionAttribute::max_threads_per_block), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {int(FunctionAttribute::static_shared_bytes), CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {int(FunctionAttribute::local_bytes), CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
      {int(FunctionAttribute::registers), CU_FUNC_ATTRIBUTE_NUM_REGS},
      {int(FunctionAttribute::max_dynamic_shared_bytes),
       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
      {int(PointerAttribute::context), CU_POINTER_ATTRIBUTE_CONTEXT},
      {int(PointerAttribute::memory_type), CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {int(PointerAttribute::is_managed), CU_POINTER_ATTRIBUTE_IS_MANAGED},
      {int(PointerAttribute::device_ordinal), CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {int(kStreamNonBlocking), CU_STREAM_NON_BLOCKING},
      {int(kEventDisableTiming), CU_EVENT_DISABLE_TIMING},
      {int(kMemoryTypeHost), CU_MEMORYTYPE_HOST},
      {int(kMemoryTypeDevice), CU_MEMORYTYPE_DEVICE},
  };
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(ours, theirs);
}
#endif

}  // namespace
}  // namespace chainfold::runtime
