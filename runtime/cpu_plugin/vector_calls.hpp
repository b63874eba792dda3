// The C library's functions of whole vectors.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces calls on vectors of f32 and f64 by calls of the C library's vector functions, of at
/// most 4 ulp. These are glibc's libmvec, for vectors of 16, 32 or 64 bytes. The calls are those of
/// llvm.exp, llvm.log, llvm.pow, and the functions that emitters declare
/// (chainfold.library.tanh.f32.32, ...). Where the machine has no such function, each lane calls
/// the function of one element.
///
/// Before: a module for the host, optimised. After: the same values but for their rounding. That
/// depends on the width of the registers that a lane is in, and on whether it is in a vector.
void call_vector_functions(llvm::Module& module);

/// Whether the machine has the library.
bool has_vector_functions();

}  // namespace chainfold::runtime::cpu
