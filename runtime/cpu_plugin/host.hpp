// What LLVM knows about the processor this process runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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
  bool multiplies_apart;     ///< what adds and what multiplies and adds are different units
  bool half_units;           ///< units take a register of vector_bits in two halves

  /// Whether `features` has the one with this name.
  [[nodiscard]] bool has(std::string_view feature) const;
};

/// The host, detected on the first call, with vectors of no more bits than CHAINFOLD_VECTOR_BITS
/// says, if that is set: 512, 256 (AVX2) or 128 (SSE). Thread-safe.
const Host& host();

/// Bits of the vectors that a function of generated code computes with, which target_function()
/// chose: of half the host's registers where the code says that they do (Launch::half_vectors) and
/// the host's units are no wider.
int vector_bits(const llvm::Function& function);
/// Compiles the function for the host.
void target_function(llvm::Function& function);
/// Compiles a function that target_function() did not see for the host, with the vectors of `like`,
/// which calls it; it has a frame only if it needs one.
void target_like(llvm::Function& function, const llvm::Function& like);

/// A new target machine for the host, for one thread; null, with `error` filled, when LLVM has
/// none.
std::unique_ptr<llvm::TargetMachine> make_target_machine(std::string& error);

/// What compiled code calls again and again while it waits for another thread, with the number of
/// calls before: at first only a hint to the processor, then the thread gives its core away, since
/// the one it waits for may have none.
extern "C" void chainfold_yield(std::int32_t polls);

}  // namespace chainfold::runtime::cpu
