// How much stack compiled functions take.
#pragma once

#include <cstdint>

namespace llvm {
class MemoryBuffer;
}

namespace chainfold::runtime::cpu {

/// Bytes of the largest frame among an object's functions, by its section of stack sizes; 0 where
/// it has none. Frames of functions that they call come on top. Thread-safe.
std::uint64_t stack_bytes_of(const llvm::MemoryBuffer& object);

}  // namespace chainfold::runtime::cpu
