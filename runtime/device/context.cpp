#include "chainfold/runtime/device/context.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

namespace chainfold::runtime {

void KnownMemory::add(std::uintptr_t address) noexcept {
  const std::size_t set = set_of(address);
  for (std::size_t way = 0; way < kWays; ++way) {
    std::uintptr_t free = 0;
    if (entries_[set + way].compare_exchange_strong(free, address, std::memory_order_relaxed))
      return;
  }
  const std::size_t way = next_way_.fetch_add(1, std::memory_order_relaxed) % kWays;
  entries_[set + way].store(address, std::memory_order_relaxed);
}

void KnownMemory::forget(std::uintptr_t begin, std::size_t bytes) noexcept {
  for (std::atomic<std::uintptr_t>& entry : entries_) {
    std::uintptr_t address = entry.load(std::memory_order_relaxed);
    if (address - begin < bytes)
      entry.compare_exchange_strong(address, 0, std::memory_order_relaxed);
  }
}

Context::Context(const DeviceInfo& device) : device_(device), process_(getpid()) {
  check(driver().primary_context_retain(&handle_, device.handle), "cuDevicePrimaryCtxRetain",
        fmt::format("device {} ({})", device.ordinal, device.name));
}

const Context& Context::of(int device) {
  struct Registry {
    std::mutex mutex;
    std::map<int, std::unique_ptr<Context>> contexts;
  };
  // Before the lock: another thread may have held it when this process was forked.
  check_not_forked();
  static Registry* const kRegistry = new Registry;  // never destroyed, see the class
  const DeviceInfo& info = device_info(device);
  const std::lock_guard lock(kRegistry->mutex);
  std::unique_ptr<Context>& context = kRegistry->contexts[device];
  if (!context) context.reset(new Context(info));
  if (context->process() != getpid()) {
    throw DeviceError(
        ErrorCode::device_failed,
        fmt::format("the CUDA context of device {} belongs to process {}, and this is "
                    "its child {}. Fix: start processes that use CUDA with exec",
                    device, context->process(), getpid()));
  }
  return *context;
}

ContextScope::ContextScope(const Context& context) {
  check_not_forked();
  const DriverApi& api = driver();
  ContextHandle current = nullptr;
  check(api.context_get_current(&current), "cuCtxGetCurrent");
  if (current == context.handle()) return;
  check(api.context_push_current(context.handle()), "cuCtxPushCurrent");
  pushed_ = true;
}

ContextScope::~ContextScope() {
  if (!pushed_ || driver_lost_by_fork()) return;
  ContextHandle popped = nullptr;
  driver().context_pop_current(&popped);  // fails only where CUDA is gone, and then nothing is left
}

}  // namespace chainfold::runtime
