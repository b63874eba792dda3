// CUDA's driver API, opened on demand. The entry points in use are declared here, so the library
// builds without CUDA and uses a GPU wherever it finds a driver. The symbol names carry their
// version (cuMemAlloc_v2): those are the stable binary interface of libcuda since CUDA 12.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/runtime/host/library_search.hpp"

namespace chainfold::runtime {

using DriverResult = int;         ///< CUresult
using DeviceHandle = int;         ///< CUdevice
using DevicePtr = std::uint64_t;  ///< CUdeviceptr
using ContextHandle = struct OpaqueContext*;
using LibraryHandle = struct OpaqueLibrary*;
using KernelHandle = struct OpaqueKernel*;
using FunctionHandle = struct OpaqueFunction*;
using StreamHandle = struct OpaqueStream*;  ///< null is the legacy default stream
using EventHandle = struct OpaqueEvent*;
using GraphHandle = struct OpaqueGraph*;
using GraphExecHandle = struct OpaqueGraphExec*;
struct DeviceUuid {
  unsigned char bytes[16];
};

/// The results that the library tells apart.
enum : DriverResult {
  kDriverSuccess = 0,
  kDriverInvalidValue = 1,
  kDriverOutOfMemory = 2,
  kDriverNotInitialized = 3,
  kDriverDeinitialized = 4,
  kDriverStubLibrary = 34,
  kDriverNoDevice = 100,
  kDriverNoBinaryForGpu = 209,
  kDriverUnsupportedPtx = 222,
  kDriverInvalidImage = 200,
  kDriverIllegalAddress = 700,
  kDriverLaunchOutOfResources = 701,
  kDriverMisalignedAddress = 716,
  kDriverLaunchFailed = 719,
  kDriverSystemMismatch = 803,
  kDriverCaptureUnsupported = 900,
};

/// CUdevice_attribute values.
enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  shared_per_block = 8,
  warp_size = 10,
  sm_count = 16,
  l2_bytes = 38,
  max_threads_per_sm = 39,
  capability_major = 75,
  capability_minor = 76,
  shared_per_sm = 81,
  registers_per_sm = 82,
  shared_per_block_optin = 97,
  max_blocks_per_sm = 106,
  reserved_shared_per_block = 111,
};

/// CUfunction_attribute values.
enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  static_shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared_bytes = 8,
};

/// CUpointer_attribute values.
enum class PointerAttribute : int {
  context = 1,
  memory_type = 2,
  is_managed = 8,
  device_ordinal = 9
};

inline constexpr unsigned kStreamNonBlocking = 1;   ///< CU_STREAM_NON_BLOCKING
inline constexpr unsigned kEventDisableTiming = 2;  ///< CU_EVENT_DISABLE_TIMING
inline constexpr int kCaptureThreadLocal = 1;       ///< CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr unsigned kMemoryTypeHost = 1;      ///< CU_MEMORYTYPE_HOST
inline constexpr unsigned kMemoryTypeDevice = 2;    ///< CU_MEMORYTYPE_DEVICE

/// CUlaunchAttribute and CUlaunchConfig.
struct DriverLaunchAttribute {
  int id = 0;
  char padding[4]{};
  union {
    char bytes[64];
    int enabled;
  } value{};
};
struct DriverLaunch {
  unsigned grid[3]{1, 1, 1};
  unsigned block[3]{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  StreamHandle stream = nullptr;
  DriverLaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
inline constexpr int kProgrammaticSerialization =
    6;  ///< CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

// X(member, symbol, (parameters)): one line an entry point; all of them return a DriverResult.
#define CHAINFOLD_DRIVER_REQUIRED(X)                                                            \
  X(init, cuInit, (unsigned flags))                                                             \
  X(driver_get_version, cuDriverGetVersion, (int* version))                                     \
  X(get_error_name, cuGetErrorName, (DriverResult result, const char** name))                   \
  X(get_error_string, cuGetErrorString, (DriverResult result, const char** text))               \
  X(device_get_count, cuDeviceGetCount, (int* count))                                           \
  X(device_get, cuDeviceGet, (DeviceHandle * device, int ordinal))                              \
  X(device_get_name, cuDeviceGetName, (char* name, int length, DeviceHandle device))            \
  X(device_get_attribute, cuDeviceGetAttribute,                                                 \
    (int* value, DeviceAttribute attribute, DeviceHandle device))                               \
  X(device_get_uuid, cuDeviceGetUuid_v2, (DeviceUuid * uuid, DeviceHandle device))              \
  X(device_total_mem, cuDeviceTotalMem_v2, (std::size_t* bytes, DeviceHandle device))           \
  X(primary_context_retain, cuDevicePrimaryCtxRetain,                                           \
    (ContextHandle * context, DeviceHandle device))                                             \
  X(primary_context_release, cuDevicePrimaryCtxRelease_v2, (DeviceHandle device))               \
  X(context_push_current, cuCtxPushCurrent_v2, (ContextHandle context))                         \
  X(context_pop_current, cuCtxPopCurrent_v2, (ContextHandle * context))                         \
  X(context_get_current, cuCtxGetCurrent, (ContextHandle * context))                            \
  X(context_get_device, cuCtxGetDevice, (DeviceHandle * device))                                \
  X(library_load_data, cuLibraryLoadData,                                                       \
    (LibraryHandle * library, const void* image, int* jit_options, void** jit_values,           \
     unsigned jit_count, int* options, void** values, unsigned count))                          \
  X(library_unload, cuLibraryUnload, (LibraryHandle library))                                   \
  X(library_get_kernel, cuLibraryGetKernel,                                                     \
    (KernelHandle * kernel, LibraryHandle library, const char* name))                           \
  X(kernel_get_function, cuKernelGetFunction, (FunctionHandle * function, KernelHandle kernel)) \
  X(function_get_attribute, cuFuncGetAttribute,                                                 \
    (int* value, FunctionAttribute attribute, FunctionHandle function))                         \
  X(function_set_attribute, cuFuncSetAttribute,                                                 \
    (FunctionHandle function, FunctionAttribute attribute, int value))                          \
  X(launch_kernel_ex, cuLaunchKernelEx,                                                         \
    (const DriverLaunch* launch, FunctionHandle function, void** parameters, void** extra))     \
  X(mem_get_info, cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                     \
  X(mem_alloc, cuMemAlloc_v2, (DevicePtr * pointer, std::size_t bytes))                         \
  X(mem_free, cuMemFree_v2, (DevicePtr pointer))                                                \
  X(mem_host_alloc, cuMemHostAlloc, (void** pointer, std::size_t bytes, unsigned flags))        \
  X(mem_free_host, cuMemFreeHost, (void* pointer))                                              \
  X(memcpy_to_device_async, cuMemcpyHtoDAsync_v2,                                               \
    (DevicePtr destination, const void* source, std::size_t bytes, StreamHandle stream))        \
  X(memcpy_to_host_async, cuMemcpyDtoHAsync_v2,                                                 \
    (void* destination, DevicePtr source, std::size_t bytes, StreamHandle stream))              \
  X(memcpy_on_device_async, cuMemcpyDtoDAsync_v2,                                               \
    (DevicePtr destination, DevicePtr source, std::size_t bytes, StreamHandle stream))          \
  X(memset_d8_async, cuMemsetD8Async,                                                           \
    (DevicePtr destination, unsigned char value, std::size_t bytes, StreamHandle stream))       \
  X(pointer_get_attributes, cuPointerGetAttributes,                                             \
    (unsigned count, PointerAttribute* attributes, void** values, DevicePtr pointer))           \
  X(stream_create, cuStreamCreate, (StreamHandle * stream, unsigned flags))                     \
  X(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))                                  \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle stream))                             \
  X(stream_wait_event, cuStreamWaitEvent,                                                       \
    (StreamHandle stream, EventHandle event, unsigned flags))                                   \
  X(stream_is_capturing, cuStreamIsCapturing, (StreamHandle stream, int* status))               \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (StreamHandle stream, int mode))             \
  X(stream_end_capture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))         \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                             \
    (GraphExecHandle * executable, GraphHandle graph, unsigned long long flags))                \
  X(graph_launch, cuGraphLaunch, (GraphExecHandle executable, StreamHandle stream))             \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle executable))                       \
  X(graph_destroy, cuGraphDestroy, (GraphHandle graph))                                         \
  X(event_create, cuEventCreate, (EventHandle * event, unsigned flags))                         \
  X(event_record, cuEventRecord, (EventHandle event, StreamHandle stream))                      \
  X(event_synchronize, cuEventSynchronize, (EventHandle event))                                 \
  X(event_elapsed_time, cuEventElapsedTime,                                                     \
    (float* milliseconds, EventHandle start, EventHandle end))                                  \
  X(event_destroy, cuEventDestroy_v2, (EventHandle event))                                      \
  X(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                   \
    (int* blocks, FunctionHandle function, int threads, std::size_t dynamic_shared_bytes))

// Entry points of CUDA 12.4 and later; null where the driver is older.
#define CHAINFOLD_DRIVER_OPTIONAL(X)                      \
  X(function_load, cuFuncLoad, (FunctionHandle function)) \
  X(kernel_get_param_info, cuKernelGetParamInfo,          \
    (KernelHandle kernel, std::size_t index, std::size_t* offset, std::size_t* size))

/// The driver's entry points as typed function pointers. Calls need a current context where CUDA
/// says so (see context.hpp).
struct DriverApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): these are declarations
#define CHAINFOLD_DECLARE(member, symbol, parameters) DriverResult(*member) parameters = nullptr;
  CHAINFOLD_DRIVER_REQUIRED(CHAINFOLD_DECLARE)
  CHAINFOLD_DRIVER_OPTIONAL(CHAINFOLD_DECLARE)
#undef CHAINFOLD_DECLARE
  int version = 0;   ///< of the driver: 1000 * major + 10 * minor
  std::string file;  ///< what the table was loaded from
};

/// Opens the first driver of `places`, resolves the table and calls cuInit. Throws DeviceError
/// (missing_library) if there is none, with every place looked at, or if it is too old or a stub.
/// Throws DeviceError (device_failed) if it does not start. Not cached: use driver().
DriverApi load_driver(const std::vector<SearchPlace>& places);

/// The driver of this process, loaded by the first call and kept for ever. Throws as load_driver
/// does; the outcome, good or bad, is the same for all calls. Thread-safe.
const DriverApi& driver();

/// Whether driver() succeeds: a driver is there and has a device.
bool driver_available() noexcept;

/// Whether this process is the child of one that had already started the driver. CUDA does not
/// survive a fork, and neither does any handle made before it.
bool driver_lost_by_fork() noexcept;

/// Throws DeviceError(device_failed) if driver_lost_by_fork().
void check_not_forked();

/// Throws the DeviceError for a failed `call`. The message has the name of the call, and the
/// driver's name and text for the result. Then come `detail` (what was asked for) and the fix where
/// there is one. Out of memory has its own code.
[[noreturn]] void throw_driver_error(DriverResult result, const char* call,
                                     std::string_view detail = {});
/// As above for a table that is not (yet) the process's own.
[[noreturn]] void throw_driver_error(const DriverApi& api, DriverResult result, const char* call,
                                     std::string_view detail);

/// Turns a result other than success into a DeviceError (see throw_driver_error).
inline void check(DriverResult result, const char* call, std::string_view detail = {}) {
  if (result != kDriverSuccess) throw_driver_error(result, call, detail);
}

}  // namespace chainfold::runtime
