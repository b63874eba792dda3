// What LLVM knows about the processor this process runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "chainfold/runtime/jit/cpu_plugin_abi.h"

namespace llvm {
class Function;
class TargetMachine;
}  // namespace llvm

namespace chainfold::runtime::cpu {

/// The host as LLVM names it; `features` is sorted, so that it can be part of a cache key.
struct Host {
  std::string triple;
  std::string cpu;
  std::string features;
  std::int32_t vector_bits;  ///< widest vector registers worth using
  bool multiplies_apart;     ///< units that add are others than those that multiply and add
  bool half_units;           ///< units take a register of vector_bits in two halves

  /// Whether `features` has the one with this name.
  [[nodiscard]] bool has(std::string_view feature) const;
};

/// The host, detected on the first call. If CHAINFOLD_VECTOR_BITS is set, vectors have no more bits
/// than it says: 512, 256 (AVX2) or 128 (SSE). Thread-safe.
const Host& host();

/// Bits of the vectors that a function of generated code computes with, which target_function()
/// chose. They are half the bits of the host's registers where the code allows that
/// (Launch::half_vectors) and the host's units are no wider.
int vector_bits(const llvm::Function& function);
/// Sets the function's attributes, so that it is compiled for the host.
void target_function(llvm::Function& function);
/// The same for a function that target_function() did not see, with the vectors of `like`, which
/// calls it. It has a frame only if it needs one.
void target_like(llvm::Function& function, const llvm::Function& like);

/// A new target machine for the host, for one thread; null, with `error` filled, when LLVM has
/// none.
std::unique_ptr<llvm::TargetMachine> make_target_machine(std::string& error);

/// Compiled code calls this again and again while it waits for another thread, with the number of
/// calls before. At first it is only a hint to the processor. Then the thread gives its core away,
/// since the one for which it waits may have none.
extern "C" void chainfold_yield(std::int32_t polls);

/// Memory for the shared arrays of the block that this thread runs: CHAINFOLD_CPU_ARRAY_BYTES bytes
/// on a line of memory, the same at every call of a thread. Blocks do not run within one another.
extern "C" void* chainfold_arrays();

}  // namespace chainfold::runtime::cpu
