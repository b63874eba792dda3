// Sums of bytes by the instructions that x86 has for products of them.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces sums of the four bytes of each word of a vector, extended to 32 bits, by products with
/// ones that are added up. The values are the same. With AVX-512 VNNI it is one instruction a
/// register, which also adds the sum before; with AVX-512BW and AVX2 it is two. On other hosts
/// nothing changes.
///
/// Before: a module for the host as it was emitted, which takes elements of a load apart by their
/// places in words. Code that LLVM has optimised is no longer recognised.
///
/// After: one instruction or two for 64 bytes, where extensions and additions are eight.
void sum_bytes(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
