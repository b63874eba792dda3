// Textual LLVM IR to an object file for this host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "chainfold/runtime/jit/cpu_plugin_abi.h"

namespace llvm {
class MemoryBuffer;
}

namespace chainfold::runtime::cpu {

/// Why a step failed; `line` is the 1-based line of the IR text, 0 if unknown.
struct Failure {
  std::string message;
  std::int32_t line = 0;
  bool given_up = false;  ///< by Effort::given_up; no message
};

/// How a compilation is done.
struct Effort {
  chainfold_cpu_effort tier = CHAINFOLD_CPU_OPTIMISED;
  const std::int32_t* given_up = nullptr;  ///< looked at between passes, atomically; may be null

  [[nodiscard]] bool is_given_up() const {
    return given_up != nullptr && __atomic_load_n(given_up, __ATOMIC_RELAXED) != 0;
  }
};

/// Parses, verifies, optimises (no fast-math, no contraction) and compiles `ir`. For baseline code
/// memory becomes values and common expressions are joined. The rest is as in O0: instructions are
/// selected one by one, and registers hold values within a block alone. Optimised code is O3's.
/// Null, with `failure` filled, when any step fails, including LLVM's own fatal errors.
/// Thread-safe; `ir` must be followed by a null byte.
std::unique_ptr<llvm::MemoryBuffer> compile_to_object(std::string_view ir, const Effort& effort,
                                                      Failure& failure);

}  // namespace chainfold::runtime::cpu
