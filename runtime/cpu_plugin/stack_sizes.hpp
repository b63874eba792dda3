// How much stack compiled functions take.
#pragma once

#include <cstdint>

namespace llvm {
class MemoryBuffer;
}

namespace chainfold::runtime::cpu {

/// Bytes of the largest frame among an object's functions, as its section of stack sizes tells; 0
/// where it has none. What functions call comes on top. Thread-safe.
std::uint64_t stack_bytes_of(const llvm::MemoryBuffer& object);

}  // namespace chainfold::runtime::cpu
