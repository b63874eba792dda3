#include "chainfold/runtime/device/memory.hpp"

#include <fmt/format.h>

namespace chainfold::runtime {
namespace {

/// Runs a releasing call in the context, swallowing failure: at exit the driver may be gone.
template <class Call>
void quietly(const Context* context, Call call) noexcept {
  if (context == nullptr || driver_lost_by_fork()) return;
  try {
    const ContextScope scope(*context);
    call(driver());
  } catch (...) {
    return;
  }
}

/// check() for allocations: says how much was asked for and how much there was.
void check_allocation(DriverResult result, const char* call, std::size_t bytes,
                      const Context& context) {
  if (result == kDriverSuccess) return;
  std::string detail = fmt::format("asked for {} bytes on device {} ({})", bytes,
                                   context.device().ordinal, context.device().name);
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver().mem_get_info(&free, &total) == kDriverSuccess) {
    detail += fmt::format(", which has {} of {} bytes free", free, total);
  }
  throw_driver_error(result, call, detail);
}

/// check() for copies and fills, formatting only on failure.
void check_bytes(DriverResult result, const char* call, std::size_t bytes) {
  if (result != kDriverSuccess) throw_driver_error(result, call, fmt::format("{} bytes", bytes));
}

}  // namespace

Stream::Stream(const Context& context) : context_(&context) {
  const ContextScope scope(context);
  check(driver().stream_create(&handle_, kStreamNonBlocking), "cuStreamCreate");
}

Stream::~Stream() {
  if (handle_ == nullptr) return;
  quietly(context_, [this](const DriverApi& api) { api.stream_destroy(handle_); });
}

void Stream::synchronize() const { runtime::synchronize(*context_, handle_); }

void Stream::wait(const Event& event) const {
  const ContextScope scope(*context_);
  check(driver().stream_wait_event(handle_, event.handle(), 0), "cuStreamWaitEvent");
}

bool is_capturing(const Context& context, StreamHandle stream) {
  const ContextScope scope(context);
  int status = 0;
  check(driver().stream_is_capturing(stream, &status), "cuStreamIsCapturing");
  return status != 0;
}

void synchronize(const Context& context, StreamHandle stream) {
  const ContextScope scope(context);
  check(driver().stream_synchronize(stream), "cuStreamSynchronize",
        "the failing work is this or an earlier launch of the stream");
}

Event::Event(const Context& context, Timing timing) : context_(&context) {
  const ContextScope scope(context);
  check(driver().event_create(&handle_, timing == Timing::on ? 0 : kEventDisableTiming),
        "cuEventCreate");
}

Event::~Event() {
  if (handle_ == nullptr) return;
  quietly(context_, [this](const DriverApi& api) { api.event_destroy(handle_); });
}

void Event::record(StreamHandle stream) const {
  const ContextScope scope(*context_);
  check(driver().event_record(handle_, stream), "cuEventRecord");
}

void Event::synchronize() const {
  const ContextScope scope(*context_);
  check(driver().event_synchronize(handle_), "cuEventSynchronize");
}

float Event::milliseconds_since(const Event& start) const {
  const ContextScope scope(*context_);
  float milliseconds = 0;
  check(driver().event_elapsed_time(&milliseconds, start.handle_, handle_), "cuEventElapsedTime");
  return milliseconds;
}

DeviceBuffer::DeviceBuffer(const Context& context, std::size_t bytes)
    : context_(&context), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  check_allocation(driver().mem_alloc(&pointer_, bytes), "cuMemAlloc", bytes, context);
}

void DeviceBuffer::swap(DeviceBuffer& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
}

void DeviceBuffer::release() noexcept {
  if (pointer_ == 0) return;
  context_->known_memory().forget(pointer_, bytes_);
  quietly(context_, [this](const DriverApi& api) { api.mem_free(pointer_); });
  pointer_ = 0;
}

PinnedBuffer::PinnedBuffer(const Context& context, std::size_t bytes)
    : context_(&context), bytes_(bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  void* data = nullptr;
  const DriverResult result = driver().mem_host_alloc(&data, bytes, 0);
  if (result == kDriverOutOfMemory) {
    throw DeviceError(ErrorCode::out_of_memory,
                      fmt::format("cuMemHostAlloc failed: {} bytes of page-locked host memory are "
                                  "not to be had. Fix: free host memory, raise the limit on locked "
                                  "memory (ulimit -l), or run the input in smaller pieces",
                                  bytes));
  }
  check(result, "cuMemHostAlloc", fmt::format("asked for {} bytes", bytes));
  data_ = static_cast<std::byte*>(data);
}

void PinnedBuffer::swap(PinnedBuffer& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

void PinnedBuffer::release() noexcept {
  if (data_ == nullptr) return;
  quietly(context_, [this](const DriverApi& api) { api.mem_free_host(data_); });
  data_ = nullptr;
}

void copy_to_device(const Context& context, DevicePtr destination, const void* source,
                    std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  check_bytes(driver().memcpy_to_device_async(destination, source, bytes, stream),
              "cuMemcpyHtoDAsync", bytes);
}

void copy_to_host(const Context& context, void* destination, DevicePtr source, std::size_t bytes,
                  StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  check_bytes(driver().memcpy_to_host_async(destination, source, bytes, stream),
              "cuMemcpyDtoHAsync", bytes);
}

void copy_on_device(const Context& context, DevicePtr destination, DevicePtr source,
                    std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  check_bytes(driver().memcpy_on_device_async(destination, source, bytes, stream),
              "cuMemcpyDtoDAsync", bytes);
}

void fill_bytes(const Context& context, DevicePtr destination, std::uint8_t value,
                std::size_t bytes, StreamHandle stream) {
  if (bytes == 0) return;
  const ContextScope scope(context);
  check_bytes(driver().memset_d8_async(destination, value, bytes, stream), "cuMemsetD8Async",
              bytes);
}

PointerInfo pointer_info(const Context& context, const void* pointer) {
  const ContextScope scope(context);
  unsigned type = 0;
  unsigned managed = 0;
  int device = -1;
  PointerAttribute names[] = {PointerAttribute::memory_type, PointerAttribute::is_managed,
                              PointerAttribute::device_ordinal};
  void* values[] = {&type, &managed, &device};
  // This call succeeds for every pointer: attributes of one that CUDA does not know come back zero.
  check(driver().pointer_get_attributes(3, names, values, reinterpret_cast<DevicePtr>(pointer)),
        "cuPointerGetAttributes");
  using Kind = PointerInfo::Kind;
  if (type == 0) return {};
  if (managed != 0) return {Kind::managed, device};
  return {type == kMemoryTypeHost ? Kind::pinned : Kind::device, device};
}

}  // namespace chainfold::runtime
