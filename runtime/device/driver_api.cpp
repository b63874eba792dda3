#include "chainfold/runtime/device/driver_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <utility>

namespace chainfold::runtime {
namespace {

constexpr int kOldestDriver = 12000;  // cuLibraryLoadData came with CUDA 12.0
constexpr const char* kDriverFix =
    "install an NVIDIA driver for CUDA 12.0 or later (525 or newer), give the container its GPU "
    "(docker run --gpus all), or set CHAINFOLD_LIBCUDA to the path of libcuda.so.1";

std::atomic<bool> g_driver_started{false};
std::atomic<bool> g_lost_by_fork{false};

void* resolve(void* handle, const char* symbol) noexcept { return dlsym(handle, symbol); }

std::string accept_driver(void* handle, const std::string& file) {
  const char* missing = nullptr;
#define CHAINFOLD_FIND(member, symbol, parameters) \
  if (missing == nullptr && resolve(handle, #symbol) == nullptr) missing = #symbol;
  CHAINFOLD_DRIVER_REQUIRED(CHAINFOLD_FIND)
#undef CHAINFOLD_FIND
  if (missing == nullptr) return {};
  return fmt::format("{} lacks {}: it is older than CUDA 12.0", file, missing);
}

struct Outcome {
  DriverApi api;
  bool good = false;
  ErrorCode code = ErrorCode::missing_library;
  std::string message;
};

Outcome start_driver() {
  Outcome outcome;
  try {
    outcome.api = load_driver(driver_places(SearchEnvironment::current()));
    outcome.good = true;
    g_driver_started = true;
    pthread_atfork(nullptr, nullptr, [] { g_lost_by_fork = g_driver_started.load(); });
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.message = error.what();
  } catch (const std::exception& error) {
    outcome.message = error.what();
  }
  return outcome;
}

const Outcome& outcome() {
  // Leaked: handles may be released by destructors that run after this file's statics are gone.
  static const Outcome* const kOutcome = new Outcome(start_driver());
  return *kOutcome;
}

const char* fix_for(DriverResult result) noexcept {
  switch (result) {
    case kDriverOutOfMemory:
      return "free device memory, run the input in smaller pieces, or choose a device with more";
    case kDriverNotInitialized:
    case kDriverDeinitialized:
      return "use CUDA neither after the driver shut down (static destructors) nor in a forked "
             "child";
    case kDriverNoDevice:
      return "check nvidia-smi and CUDA_VISIBLE_DEVICES, or compile for the CPU";
    case kDriverStubLibrary:
      return "the toolkit's stubs folder stands before the driver: take it out of LD_LIBRARY_PATH";
    case kDriverSystemMismatch:
      return "the kernel module and libcuda differ in version: reboot or reinstall the driver";
    case kDriverNoBinaryForGpu:
    case kDriverInvalidImage:
    case kDriverUnsupportedPtx:
      return "the kernel was compiled for another architecture or by a toolkit newer than the "
             "driver: update the driver or set CHAINFOLD_NVRTC to an older libnvrtc";
    case kDriverIllegalAddress:
    case kDriverMisalignedAddress:
    case kDriverLaunchFailed:
      return "check the pointers and lengths bound to the launch; the context is lost, so the "
             "process must be restarted";
    case kDriverLaunchOutOfResources:
      return "the block asks for more registers or shared memory than the device has";
    case kDriverCaptureUnsupported: return "compile and load the kernel before the capture starts";
    default: return nullptr;
  }
}

}  // namespace

DriverApi load_driver(const std::vector<SearchPlace>& places) {
  const OpenedLibrary opened = open_first(places, accept_driver);
  if (opened.handle == nullptr) {
    throw DeviceError(ErrorCode::missing_library,
                      missing_library_text("the NVIDIA driver (libcuda.so.1)", opened, kDriverFix));
  }
  DriverApi api;
  api.file = opened.file;
#define CHAINFOLD_LOAD(member, symbol, parameters) \
  api.member = reinterpret_cast<decltype(api.member)>(resolve(opened.handle, #symbol));
  CHAINFOLD_DRIVER_REQUIRED(CHAINFOLD_LOAD)
  CHAINFOLD_DRIVER_OPTIONAL(CHAINFOLD_LOAD)
#undef CHAINFOLD_LOAD
  const DriverResult started = api.init(0);
  if (started == kDriverStubLibrary) {
    throw DeviceError(ErrorCode::missing_library,
                      fmt::format("{} is the toolkit's stub, not a driver. Fix: {}; {}",
                                  opened.file, fix_for(started), kDriverFix));
  }
  const std::string detail = fmt::format("loaded from {}", opened.file);
  if (started != kDriverSuccess) throw_driver_error(api, started, "cuInit", detail);
  const DriverResult asked = api.driver_get_version(&api.version);
  if (asked != kDriverSuccess) throw_driver_error(api, asked, "cuDriverGetVersion", detail);
  if (api.version < kOldestDriver) {
    throw DeviceError(ErrorCode::missing_library,
                      fmt::format("the driver {} is for CUDA {}.{}. Fix: {}", opened.file,
                                  api.version / 1000, api.version % 1000 / 10, kDriverFix));
  }
  return api;
}

const DriverApi& driver() {
  const Outcome& result = outcome();
  if (!result.good) throw DeviceError(result.code, result.message);
  return result.api;
}

bool driver_available() noexcept {
  try {
    return outcome().good;
  } catch (...) {
    return false;
  }
}

bool driver_lost_by_fork() noexcept { return g_lost_by_fork.load(std::memory_order_relaxed); }

void check_not_forked() {
  if (!driver_lost_by_fork()) return;
  throw DeviceError(ErrorCode::device_failed,
                    "this process was forked after its parent had started CUDA, and CUDA does not "
                    "survive a fork. Fix: start the process with spawn or exec (in Python, "
                    "multiprocessing.set_start_method(\"spawn\")), or fork before the first use");
}

void throw_driver_error(const DriverApi& api, DriverResult result, const char* call,
                        std::string_view detail) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.get_error_name == nullptr || api.get_error_name(result, &name) != kDriverSuccess) {
    name = nullptr;
  }
  if (api.get_error_string == nullptr || api.get_error_string(result, &text) != kDriverSuccess) {
    text = nullptr;
  }
  std::string message = fmt::format("{} failed: {} ({}{}{})", call, name ? name : "unknown error",
                                    result, text ? ", " : "", text ? text : "");
  if (!detail.empty()) message += fmt::format("; {}", detail);
  if (const char* fix = fix_for(result)) message += fmt::format(". Fix: {}", fix);
  throw DeviceError(
      result == kDriverOutOfMemory ? ErrorCode::out_of_memory : ErrorCode::device_failed, message);
}

void throw_driver_error(DriverResult result, const char* call, std::string_view detail) {
  throw_driver_error(driver(), result, call, detail);
}

}  // namespace chainfold::runtime
