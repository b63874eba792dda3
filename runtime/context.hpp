// The CUDA context of a device. Chainfold works in the primary context, which the CUDA runtime,
// PyTorch and most engines share: their pointers and streams are valid here.
#pragma once

#include "chainfold/runtime/device.hpp"

namespace chainfold::runtime {

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

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  explicit Context(const DeviceInfo& device);
  const DeviceInfo& device_;
  ContextHandle handle_ = nullptr;
  int process_ = 0;
};

/// Makes a context current on this thread until the end of the scope, then restores what was
/// current before. Costs one look-up where it is current already. Throws DeviceError in a forked
/// child and on driver errors.
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
