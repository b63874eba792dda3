// Minima and maxima of floats that propagate NaN and tell -0 from +0, by the instruction that
// AVX-512 has for them.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces llvm.minimum and llvm.maximum of vectors, with the same values, where the host has
/// AVX-512DQ; else nothing.
///
/// Before: a module for the host, optimised: LLVM does not look through what stands for these
/// intrinsics. After: three instructions a register where LLVM 19 writes six, two of which move
/// masks; each minimum directly behind what it takes, so that trees over the same rows take turns
/// and no row waits in memory until the first tree is done.
void rewrite_minima(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
