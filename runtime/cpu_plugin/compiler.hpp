// Textual LLVM IR to an object file for this host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace llvm {
class MemoryBuffer;
}

namespace chainfold::runtime::cpu {

/// Why a step failed; `line` is the 1-based line of the IR text, 0 if unknown.
struct Failure {
  std::string message;
  std::int32_t line = 0;
};

/// Parses, verifies, optimises (O3, no fast-math, no contraction) and compiles `ir`. Null, with
/// `failure` filled, when any step fails, including LLVM's own fatal errors. Thread-safe; `ir` must
/// be followed by a null byte.
std::unique_ptr<llvm::MemoryBuffer> compile_to_object(std::string_view ir, Failure& failure);

}  // namespace chainfold::runtime::cpu
