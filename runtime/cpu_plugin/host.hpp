// What LLVM knows about the processor this process runs on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace chainfold::runtime::cpu {

/// The host as LLVM names it; `features` is sorted, so that it can be part of a cache key.
struct Host {
  std::string triple;
  std::string cpu;
  std::string features;
  std::int32_t vector_bits;  ///< widest vector registers worth using
  bool multiplies_apart;     ///< what adds and what multiplies and adds are different units
};

/// The host, detected on the first call. Thread-safe.
const Host& host();

/// A new target machine for the host, for one thread; null, with `error` filled, when LLVM has
/// none.
std::unique_ptr<llvm::TargetMachine> make_target_machine(std::string& error);

/// What compiled code calls again and again while it waits for another thread, with the number of
/// calls before: at first only a hint to the processor, then the thread gives its core away, since
/// the one it waits for may have none.
extern "C" void chainfold_yield(std::int32_t polls);

}  // namespace chainfold::runtime::cpu
