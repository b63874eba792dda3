// Minima and maxima of floats that propagate NaN and tell -0 from +0, by the instruction that
// AVX-512 has for them.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces llvm.minimum and llvm.maximum of vectors, with the same values. Only functions with
/// vectors of 512 bits are changed (host.hpp).
///
/// Before: a module for the host, optimised, since LLVM does not look through the replacement.
///
/// After: three instructions a register where LLVM 19 writes six, two of which move masks. Each
/// minimum stands directly behind its operands. So trees over the same rows take turns, and no row
/// waits in memory until the first tree is done.
void rewrite_minima(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
