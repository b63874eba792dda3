// Sums of bytes by the instructions that x86 has for products of them.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces sums of the four bytes of each word of a vector, extended to 32 bits, with the same
/// values, by products with ones that are added up: of AVX-512 VNNI one instruction a register,
/// which adds what was there before as well, of AVX-512BW and AVX2 two. Else nothing.
///
/// Before: a module for the host as it was emitted, which takes elements of a load apart by their
/// places in words: what LLVM makes of them is no longer recognised. After: for 64 bytes one
/// instruction or two, where extensions and additions are eight.
void sum_bytes(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
