// A stand-in for libcuda.so.1 that computes nothing: one device of host memory, where every call
// succeeds and is counted. It shows what the library asks of a driver where there is none.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "chainfold/runtime/device/driver_api.hpp"

namespace {

using namespace chainfold::runtime;

/// How often one entry point was called; all of them make a list.
struct Counter {
  explicit Counter(const char* symbol) : name(symbol), next(first.exchange(this)) {}
  const char* name;
  std::atomic<std::int64_t> calls{0};
  Counter* next;
  static inline std::atomic<Counter*> first{nullptr};
};

/// What cuMemAlloc and cuMemHostAlloc gave, by address.
struct Memory {
  std::mutex mutex;
  struct Block {
    std::size_t bytes = 0;
    unsigned type = 0;
  };
  std::map<std::uintptr_t, Block> blocks;

  void* allocate(std::size_t bytes, unsigned type) {
    void* const data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    const std::lock_guard lock(mutex);
    blocks[reinterpret_cast<std::uintptr_t>(data)] = {bytes, type};
    return data;
  }
  void free(void* data) {
    const std::lock_guard lock(mutex);
    blocks.erase(reinterpret_cast<std::uintptr_t>(data));
    std::free(data);
  }
  unsigned type_of(std::uintptr_t address) {
    const std::lock_guard lock(mutex);
    auto after = blocks.upper_bound(address);
    if (after == blocks.begin()) return 0;
    const auto& [begin, block] = *--after;
    return address - begin < block.bytes ? block.type : 0;
  }
};
Memory& memory() {
  static auto* const kMemory = new Memory;
  return *kMemory;
}

thread_local ContextHandle t_current = nullptr;

template <class Handle>
Handle some_handle() {
  static int thing = 0;
  return reinterpret_cast<Handle>(&thing);
}

int attribute(DeviceAttribute which) {
  switch (which) {  // of an H200
    case DeviceAttribute::max_threads_per_block: return 1024;
    case DeviceAttribute::shared_per_block: return 48 * 1024;
    case DeviceAttribute::warp_size: return 32;
    case DeviceAttribute::sm_count: return 132;
    case DeviceAttribute::l2_bytes: return 60 << 20;
    case DeviceAttribute::max_threads_per_sm: return 2048;
    case DeviceAttribute::capability_major: return 9;
    case DeviceAttribute::capability_minor: return 0;
    case DeviceAttribute::shared_per_sm: return 228 * 1024;
    case DeviceAttribute::registers_per_sm: return 65'536;
    case DeviceAttribute::shared_per_block_optin: return 227 * 1024;
    case DeviceAttribute::max_blocks_per_sm: return 32;
    case DeviceAttribute::reserved_shared_per_block: return 1024;
  }
  return 0;
}

void* pointer_of(DevicePtr address) { return reinterpret_cast<void*>(address); }

}  // namespace

/// Calls of an entry point so far; of all of them for null.
extern "C" std::int64_t counting_driver_calls(const char* symbol) {
  std::int64_t calls = 0;
  for (const Counter* counter = Counter::first; counter != nullptr; counter = counter->next) {
    if (symbol == nullptr || std::strcmp(symbol, counter->name) == 0) calls += counter->calls;
  }
  return calls;
}

/// Launches so far that may begin before the kernel before them has ended.
static std::atomic<std::int64_t> overlaps{0};
extern "C" std::int64_t counting_driver_overlaps() { return overlaps; }

// ENTRY(symbol, (parameters), statements): counts a call and succeeds.
#define ENTRY(symbol, parameters, ...)                     \
  extern "C" DriverResult symbol parameters {              \
    static Counter counter(#symbol);                       \
    counter.calls.fetch_add(1, std::memory_order_relaxed); \
    __VA_ARGS__;                                           \
    return kDriverSuccess;                                 \
  }

ENTRY(cuInit, (unsigned))
ENTRY(cuDriverGetVersion, (int* version), *version = 13'000)
ENTRY(cuGetErrorName, (DriverResult, const char** name), *name = "COUNTING_DRIVER")
ENTRY(cuGetErrorString, (DriverResult, const char** text), *text = "no error of a device")
ENTRY(cuDeviceGetCount, (int* count), *count = 1)
ENTRY(cuDeviceGet, (DeviceHandle * device, int ordinal), *device = ordinal)
ENTRY(cuDeviceGetName, (char* name, int length, DeviceHandle),
      std::strncpy(name, "counting driver", static_cast<std::size_t>(length)))
ENTRY(cuDeviceGetAttribute, (int* value, DeviceAttribute which, DeviceHandle),
      *value = attribute(which))
ENTRY(cuDeviceGetUuid_v2, (DeviceUuid * uuid, DeviceHandle), *uuid = {})
ENTRY(cuDeviceTotalMem_v2, (std::size_t* bytes, DeviceHandle), *bytes = std::size_t{1} << 37)
ENTRY(cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceHandle),
      *context = some_handle<ContextHandle>())
ENTRY(cuDevicePrimaryCtxRelease_v2, (DeviceHandle))
ENTRY(cuCtxPushCurrent_v2, (ContextHandle context), t_current = context)
ENTRY(cuCtxPopCurrent_v2, (ContextHandle * context), *context = t_current; t_current = nullptr)
ENTRY(cuCtxGetCurrent, (ContextHandle * context), *context = t_current)
ENTRY(cuCtxGetDevice, (DeviceHandle * device), *device = 0)
ENTRY(cuLibraryLoadData,
      (LibraryHandle * library, const void*, int*, void**, unsigned, int*, void**, unsigned),
      *library = some_handle<LibraryHandle>())
ENTRY(cuLibraryUnload, (LibraryHandle))
ENTRY(cuLibraryGetKernel, (KernelHandle * kernel, LibraryHandle, const char*),
      *kernel = some_handle<KernelHandle>())
ENTRY(cuKernelGetFunction, (FunctionHandle * function, KernelHandle),
      *function = some_handle<FunctionHandle>())
ENTRY(cuFuncGetAttribute, (int* value, FunctionAttribute, FunctionHandle), *value = 32)
ENTRY(cuFuncSetAttribute, (FunctionHandle, FunctionAttribute, int))
ENTRY(cuLaunchKernelEx, (const DriverLaunch* launch, FunctionHandle, void**, void**),
      overlaps += launch->attribute_count)
ENTRY(cuMemGetInfo_v2, (std::size_t* free, std::size_t* total),
      *free = *total = std::size_t{1} << 37)
ENTRY(cuMemAlloc_v2, (DevicePtr * pointer, std::size_t bytes),
      *pointer = reinterpret_cast<DevicePtr>(memory().allocate(bytes, kMemoryTypeDevice)))
ENTRY(cuMemFree_v2, (DevicePtr pointer), memory().free(pointer_of(pointer)))
ENTRY(cuMemHostAlloc, (void** pointer, std::size_t bytes, unsigned),
      *pointer = memory().allocate(bytes, kMemoryTypeHost))
ENTRY(cuMemFreeHost, (void* pointer), memory().free(pointer))
ENTRY(cuMemcpyHtoDAsync_v2, (DevicePtr to, const void* from, std::size_t bytes, StreamHandle),
      std::memcpy(pointer_of(to), from, bytes))
ENTRY(cuMemcpyDtoHAsync_v2, (void* to, DevicePtr from, std::size_t bytes, StreamHandle),
      std::memcpy(to, pointer_of(from), bytes))
ENTRY(cuMemcpyDtoDAsync_v2, (DevicePtr to, DevicePtr from, std::size_t bytes, StreamHandle),
      std::memcpy(pointer_of(to), pointer_of(from), bytes))
ENTRY(cuMemsetD8Async, (DevicePtr to, unsigned char value, std::size_t bytes, StreamHandle),
      std::memset(pointer_of(to), value, bytes))
ENTRY(cuStreamCreate, (StreamHandle * stream, unsigned), *stream = some_handle<StreamHandle>())
ENTRY(cuStreamDestroy_v2, (StreamHandle))
ENTRY(cuStreamSynchronize, (StreamHandle))
ENTRY(cuStreamWaitEvent, (StreamHandle, EventHandle, unsigned))
ENTRY(cuStreamIsCapturing, (StreamHandle, int* status), *status = 0)
ENTRY(cuStreamBeginCapture_v2, (StreamHandle, int))
ENTRY(cuStreamEndCapture, (StreamHandle, GraphHandle* graph), *graph = some_handle<GraphHandle>())
ENTRY(cuGraphInstantiateWithFlags, (GraphExecHandle * executable, GraphHandle, unsigned long long),
      *executable = some_handle<GraphExecHandle>())
ENTRY(cuGraphLaunch, (GraphExecHandle, StreamHandle))
ENTRY(cuGraphExecDestroy, (GraphExecHandle))
ENTRY(cuGraphDestroy, (GraphHandle))
ENTRY(cuEventCreate, (EventHandle * event, unsigned), *event = some_handle<EventHandle>())
ENTRY(cuEventRecord, (EventHandle, StreamHandle))
ENTRY(cuEventSynchronize, (EventHandle))
ENTRY(cuEventElapsedTime, (float* milliseconds, EventHandle, EventHandle), *milliseconds = 1)
ENTRY(cuEventDestroy_v2, (EventHandle))
ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, FunctionHandle, int, std::size_t),
      *blocks = 2)

extern "C" DriverResult cuPointerGetAttributes(unsigned count, PointerAttribute* which,
                                               void** values, DevicePtr pointer) {
  static Counter counter("cuPointerGetAttributes");
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  const unsigned type = memory().type_of(pointer);
  for (unsigned i = 0; i < count; ++i) {
    const int device = type == 0 ? -2 : 0;
    if (which[i] == PointerAttribute::memory_type) std::memcpy(values[i], &type, sizeof type);
    if (which[i] == PointerAttribute::device_ordinal)
      std::memcpy(values[i], &device, sizeof device);
    if (which[i] == PointerAttribute::is_managed) std::memset(values[i], 0, sizeof(unsigned));
  }
  return kDriverSuccess;
}
