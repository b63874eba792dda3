// Owners of device memory, pinned host memory, streams and events. Sizes are in bytes. All
// functions here throw DeviceError on failure (out_of_memory where memory ran out). Destructors
// never throw, and do nothing in a forked child or after the driver has shut down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "chainfold/runtime/device/context.hpp"

namespace chainfold::runtime {

class Event;

/// A stream of a device. It does not wait for the legacy default stream.
class Stream {
 public:
  explicit Stream(const Context& context);
  ~Stream();
  Stream(Stream&& other) noexcept
      : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;

  [[nodiscard]] StreamHandle handle() const noexcept { return handle_; }
  [[nodiscard]] const Context& context() const noexcept { return *context_; }
  /// Waits on the host until all work of the stream is done; reports errors of earlier launches.
  void synchronize() const;
  /// Makes later work of this stream wait for an event.
  void wait(const Event& event) const;

 private:
  const Context* context_;
  StreamHandle handle_ = nullptr;
};

/// Whether work sent to the stream is being captured into a graph: no allocation with cuMemAlloc,
/// no module load and no synchronisation is allowed then.
bool is_capturing(const Context& context, StreamHandle stream);
/// Waits on the host for a stream that need not be ours.
void synchronize(const Context& context, StreamHandle stream);

/// A point in a stream's work.
class Event {
 public:
  enum class Timing : std::uint8_t { off, on };
  explicit Event(const Context& context, Timing timing = Timing::off);
  ~Event();
  Event(Event&& other) noexcept
      : context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;

  [[nodiscard]] EventHandle handle() const noexcept { return handle_; }
  void record(StreamHandle stream) const;
  /// Waits on the host until the event has happened.
  void synchronize() const;
  /// Milliseconds from `start` to this event (resolution about half a microsecond). Both need
  /// Timing::on and must have happened.
  [[nodiscard]] float milliseconds_since(const Event& start) const;

 private:
  const Context* context_;
  EventHandle handle_ = nullptr;
};

/// Device memory, aligned to at least 256 bytes. Zero bytes allocate nothing and give a null
/// pointer.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocates at once (cuMemAlloc); freeing waits for the device.
  DeviceBuffer(const Context& context, std::size_t bytes);
  ~DeviceBuffer() { release(); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }

  [[nodiscard]] DevicePtr pointer() const noexcept { return pointer_; }
  /// The pointer as C++ code passes it around; not to be read on the host.
  [[nodiscard]] void* data() const noexcept {
    return reinterpret_cast<void*>(pointer_);  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept;
  void release() noexcept;
  const Context* context_ = nullptr;
  DevicePtr pointer_ = 0;
  std::size_t bytes_ = 0;
};

/// Page-locked host memory, the only kind that copies run asynchronously from and to.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(const Context& context, std::size_t bytes);
  ~PinnedBuffer() { release(); }
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    PinnedBuffer(std::move(other)).swap(*this);
    return *this;
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_, bytes_}; }

 private:
  void swap(PinnedBuffer& other) noexcept;
  void release() noexcept;
  const Context* context_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Copies and fills in stream order. The driver stages data from and to pageable host memory, and
/// may return only when the source was read. The destination is valid after a synchronisation.
void copy_to_device(const Context& context, DevicePtr destination, const void* source,
                    std::size_t bytes, StreamHandle stream);
void copy_to_host(const Context& context, void* destination, DevicePtr source, std::size_t bytes,
                  StreamHandle stream);
void copy_on_device(const Context& context, DevicePtr destination, DevicePtr source,
                    std::size_t bytes, StreamHandle stream);
void fill_bytes(const Context& context, DevicePtr destination, std::uint8_t value,
                std::size_t bytes, StreamHandle stream);

/// What CUDA knows of a pointer.
struct PointerInfo {
  enum class Kind : std::uint8_t { pageable, pinned, device, managed };
  Kind kind = Kind::pageable;  ///< pageable: CUDA does not know it
  int device = -1;             ///< the owner's ordinal; -1 for pageable memory
};
PointerInfo pointer_info(const Context& context, const void* pointer);

}  // namespace chainfold::runtime
