// The CUDA context of a device. Chainfold works in the primary context, which the CUDA runtime,
// PyTorch and most engines share: their pointers and streams are valid here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "chainfold/runtime/device/device.hpp"

namespace chainfold::runtime {

/// Addresses that the driver has said to be memory of a device. A launch asks about each but once,
/// since an answer takes longer than all other checks of a launch. A newer address may take the
/// place of an older one. Memory that this library frees is forgotten. Memory that its owner frees
/// is not: drivers hand its address out again as device memory. So a mistake that a launch would
/// have reported is then left to the driver. Thread-safe.
class KnownMemory {
 public:
  [[nodiscard]] bool has(std::uintptr_t address) const noexcept {
    if (address == 0) return false;
    const std::size_t set = set_of(address);
    for (std::size_t way = 0; way < kWays; ++way)
      if (entries_[set + way].load(std::memory_order_relaxed) == address) return true;
    return false;
  }
  void add(std::uintptr_t address) noexcept;
  /// Forgets what lies in `bytes` bytes from `begin` on.
  void forget(std::uintptr_t begin, std::size_t bytes) noexcept;

 private:
  static constexpr int kSetBits = 7;
  static constexpr std::size_t kWays = 8;  // a line of 64 bytes: the addresses of a launch stay
  static std::size_t set_of(std::uintptr_t address) noexcept {
    // Allocations begin at multiples of 256 and more: all bits must count.
    return kWays * static_cast<std::size_t>(address * 0x9E3779B97F4A7C15U >> (64 - kSetBits));
  }
  alignas(64) std::array<std::atomic<std::uintptr_t>, kWays << kSetBits> entries_{};
  std::atomic<std::size_t> next_way_{0};  // whose turn it is where a set is full
};

/// A device's primary context. Retained once a process, never released: destructors of statics may
/// still free device memory at exit, when CUDA itself is torn down.
class Context {
 public:
  /// The context of a device, created by the first call. Throws DeviceError as device_info() does,
  /// and device_failed in a process that was forked after CUDA had started. Thread-safe.
  static const Context& of(int device);

  [[nodiscard]] const DeviceInfo& device() const noexcept { return device_; }
  [[nodiscard]] ContextHandle handle() const noexcept { return handle_; }
  /// The process that made the context, the only one that may use it.
  [[nodiscard]] int process() const noexcept { return process_; }
  /// This device's memory.
  [[nodiscard]] KnownMemory& known_memory() const noexcept { return known_memory_; }

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  explicit Context(const DeviceInfo& device);
  const DeviceInfo& device_;
  ContextHandle handle_ = nullptr;
  int process_ = 0;
  mutable KnownMemory known_memory_;
};

/// Makes a context current on this thread until the end of the scope, then restores the one that
/// was current before. Costs one look-up where it is current already. Throws DeviceError in a
/// forked child and on driver errors.
class ContextScope {
 public:
  explicit ContextScope(const Context& context);
  explicit ContextScope(int device) : ContextScope(Context::of(device)) {}
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace chainfold::runtime
