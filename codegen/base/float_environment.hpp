// The floating-point environment of the compiler, whatever its caller's is.
//
// A program may round upward, trap on 0 / 0, or flush subnormals to zero (as all built with
// -Ofast do). What a kernel computes, its literals, its plan and its key in the cache must not
// depend on that.
#pragma once

#include <cfenv>

namespace chainfold::codegen {

/// While one lives, its thread has C++'s default environment: round to nearest, keep subnormals,
/// trap nothing. For whole calls; the definitions of ops.hpp take care of themselves.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept;
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_{};
};

/// The same for one operation: of x86-64 only the vector unit's part, and that only where it has to
/// be changed.
class DefaultFloatOperation {
 public:
#if defined(__x86_64__)
  DefaultFloatOperation() noexcept : saved_(__builtin_ia32_stmxcsr()) {
    if (differs()) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~DefaultFloatOperation() {
    if (differs()) __builtin_ia32_ldmxcsr(saved_);
  }
#else
  DefaultFloatOperation() noexcept = default;
  ~DefaultFloatOperation() = default;
#endif
  DefaultFloatOperation(const DefaultFloatOperation&) = delete;
  DefaultFloatOperation& operator=(const DefaultFloatOperation&) = delete;

  /// Keeps the compiler from moving what is computed from `value`, or what computes it, over this.
  template <class T>
  static void hold(T& value) noexcept {
    asm volatile("" : "+m"(value) : : "memory");
  }

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;
  [[nodiscard]] bool differs() const noexcept { return (saved_ & ~kFlags) != kDefault; }
  unsigned saved_;
#else
  DefaultFloatEnvironment whole_;
#endif
};

}  // namespace chainfold::codegen
