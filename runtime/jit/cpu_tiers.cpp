#include "chainfold/runtime/jit/cpu_tiers.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"

namespace chainfold::runtime {
namespace {

/// What the frames of optimised code take at most, about, and what any thread has.
constexpr std::uint64_t kSmallFrame = std::uint64_t{16} << 10;
/// For what functions call, and the scheduler above them.
constexpr std::uint64_t kReserve = std::uint64_t{32} << 10;

/// Whether this thread has so many bytes of stack left, and those that help it have them. False
/// where it runs on a stack that is not the one it was given, whose size is not known.
bool has_stack(std::uint64_t bytes) {
  if (cpu_plugin().worker_stack() < bytes + kReserve) return false;
  struct Stack {
    std::uintptr_t begin = 0, end = 0;
    Stack() {
      pthread_attr_t attributes;
      if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
      void* lowest = nullptr;
      std::size_t size = 0;
      if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
        begin = reinterpret_cast<std::uintptr_t>(lowest);
        end = begin + size;
      }
      pthread_attr_destroy(&attributes);
    }
  };
  thread_local const Stack stack;
  const char here = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(&here);
  return at > stack.begin && at < stack.end && at - stack.begin > bytes + kReserve;
}

}  // namespace

Tiering tiering_of_process() {
  constexpr const char* kVariable = "CHAINFOLD_TIERED";
  const char* const value = std::getenv(kVariable);
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty() || text == "on") return Tiering::both;
  if (text == "off") return Tiering::optimised;
  if (text == "baseline") return Tiering::baseline;
  throw UserError(ErrorCode::invalid_argument,
                  fmt::format("{}={} tells no tiers; set it to on, off or baseline, or unset it",
                              kVariable, text),
                  kVariable);
}

CpuTiers::CpuTiers(std::shared_ptr<const CpuModule> optimised, std::size_t count)
    : CpuTiers(std::move(optimised), count, nullptr) {
  optimised_ = true;
}

CpuTiers::CpuTiers(std::shared_ptr<const CpuModule> baseline, std::size_t count, Optimise optimise)
    : first_(std::move(baseline)), make_optimised_(std::move(optimise)), optimised_(false) {
  for (std::size_t i = 0; i < count; ++i) functions_.push_back(first_->function(i));
}

void CpuTiers::launch(std::size_t i, std::int64_t blocks, std::int64_t grain,
                      const std::uint64_t* args) {
  if (!optimised() && first_->stack_bytes() > kSmallFrame && !has_stack(first_->stack_bytes()))
    optimise();
  run_on_cpu(&functions_[i], blocks, grain, args);
}

void CpuTiers::make(const std::int32_t* given_up) {
  if (optimised()) return;
  Optimised made = make_optimised_(given_up);
  if (!made.module) return;
  second_ = std::move(made.module);
  for (std::size_t i = 0; i < functions_.size(); ++i)
    __atomic_store_n(&functions_[i], second_->function(i), __ATOMIC_RELEASE);
  optimise_ms_ = made.compile_ms;
  make_optimised_ = nullptr;  // with the source
  optimised_.store(true, std::memory_order_release);
}

void CpuTiers::optimise() {
  if (optimised()) return;
  roomy([&] {
    const std::lock_guard lock(mutex_);
    make(nullptr);
  });
}

void CpuTiers::run() noexcept {
  // Not locked here: a thread in optimise() makes the code, or, in a child, did at the fork.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  try {
    make(&given_up_);
  } catch (...) {  // a call of optimise() throws it
  }
}

void CpuTiers::give_up() noexcept { __atomic_store_n(&given_up_, 1, __ATOMIC_RELAXED); }

}  // namespace chainfold::runtime
