// Functions of the C library of whole vectors.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces llvm.exp, llvm.log, llvm.pow and the functions that emitters declare
/// (chainfold.library.tanh.f32.32, ...) of vectors of f32 and f64 by the C library's functions of
/// vectors (glibc's libmvec, of 16, 32 or 64 bytes), of at most 4 ulp; where the machine has none,
/// by the function of one element for each lane.
///
/// Before: a module for the host, optimised. After: the same values but for their rounding, which
/// depends on the vector that a lane is in: its registers' width, and whether it is one at all.
void call_vector_functions(llvm::Module& module);

/// Whether the machine has the library.
bool has_vector_functions();

}  // namespace chainfold::runtime::cpu
