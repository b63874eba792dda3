// Executable: a program as machine code, loaded and ready; and the process's cache of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::runtime {

/// A loaded program. Thread-safe. Its results do not change, but for which NaN; its speed may.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs (CPU) or queues (GPU) one launch of the program over `blocks` blocks. A GPU's context
  /// must be current on this thread (ContextScope). `after`: the stream's last kernel is of this
  /// call of this program. A launch overlaps with such a kernel alone; the program's first launch
  /// overlaps with any.
  virtual void launch(std::size_t index, std::int64_t blocks, const std::uint64_t* slots,
                      std::size_t count, void* stream, bool after) const = 0;
  /// Returns when the code is optimised. Without this call it is optimised beside launches. Throws
  /// what the compilers throw.
  virtual void optimise() const {}
  [[nodiscard]] virtual bool optimised() const { return true; }
  /// Milliseconds in the compiler for code that took the place of other code.
  [[nodiscard]] virtual double optimise_ms() const { return 0; }
  /// Milliseconds in the compiler; 0 for what came from the disk.
  [[nodiscard]] double compile_ms() const { return compile_ms_; }
  /// Whether the code came from the cache on disk.
  [[nodiscard]] bool from_disk() const { return from_disk_; }

 protected:
  Executable(double compile_ms, bool from_disk) : compile_ms_(compile_ms), from_disk_(from_disk) {}

 private:
  double compile_ms_;
  bool from_disk_;
};

/// The executable of `program` on a device (`device` < 0: the CPU). One that is alive in this
/// process comes first (`reused` says so), then one from the disk, then a compiled one. That is
/// kept on disk, with `description` for people. A compilation in flight is waited for, not
/// repeated. Where `least` is baseline, the CPU's code may be that at first. It is optimised in the
/// background once it has lived for as long as its compilation took. The code is unloaded with its
/// last owner. Throws what the compilers throw.
std::shared_ptr<const Executable> load_executable(const codegen::Program& program,
                                                  const codegen::Target& target, int device,
                                                  bool& reused, std::string_view description = {},
                                                  Effort least = Effort::optimised);

}  // namespace chainfold::runtime
