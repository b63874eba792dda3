// Work of the compilers on a thread of the library's own.
//
// LLVM, NVRTC and this library's passes recurse. A caller's thread may have as little stack as 64
// KiB, and any floating-point environment.
#pragma once

#include <pthread.h>

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace chainfold::runtime {

/// Bytes of stack that compilations have.
inline constexpr std::size_t kRoomyStack = std::size_t{16} << 20;

/// Runs call(argument), which throws nothing, on a thread with kRoomyStack bytes of stack and the
/// default floating-point environment, and waits for it. On such a thread, or where the system has
/// no thread left, it runs right here, in the default environment.
void run_roomy(void (*call)(void*) noexcept, void* argument);

/// Starts a roomy thread that runs call(argument), which throws nothing. The caller joins it. False
/// where the system has no thread left.
bool start_roomy(pthread_t& thread, void (*call)(void*) noexcept, void* argument);

/// What work() returns or throws, from a roomy thread.
template <class Work>
auto roomy(Work&& work) {
  using Result = std::invoke_result_t<Work&>;
  struct State {
    std::remove_reference_t<Work>& work;
    std::optional<std::conditional_t<std::is_void_v<Result>, bool, Result>> result{};
    std::exception_ptr failure{};
  };
  State state{work};
  run_roomy(
      [](void* argument) noexcept {
        State& s = *static_cast<State*>(argument);
        try {
          if constexpr (std::is_void_v<Result>) {
            s.work();
          } else {
            s.result.emplace(s.work());
          }
        } catch (...) {
          s.failure = std::current_exception();
        }
      },
      &state);
  if (state.failure) std::rethrow_exception(state.failure);
  if constexpr (!std::is_void_v<Result>) return *std::move(state.result);
}

}  // namespace chainfold::runtime
