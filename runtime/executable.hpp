// Executable: a program as machine code, loaded and ready; and the process's cache of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "chainfold/codegen/program.hpp"
#include "chainfold/codegen/target.hpp"

namespace chainfold::runtime {

/// Immutable and thread-safe.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs (CPU) or queues (GPU) one launch of the program over `blocks` blocks.
  virtual void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots,
                      std::size_t count, void* stream) const = 0;
  /// Milliseconds in the compiler.
  [[nodiscard]] virtual double compile_ms() const = 0;
};

/// The executable of `program` on a device (`device` < 0: the CPU), compiled unless an equal one
/// was compiled for the same device before; a compilation in flight is waited for, not repeated.
/// `reused` tells which. Throws what the compilers throw.
std::shared_ptr<const Executable> load_executable(const codegen::Program& program,
                                                  const codegen::Target& target, int device,
                                                  bool& reused);

}  // namespace chainfold::runtime
