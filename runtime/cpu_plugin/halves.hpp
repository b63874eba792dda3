// Floats rounded to bf16 by the instruction that x86 has for sums of products of bytes.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces the rounding of vectors of f32 to the upper halves of their words, to nearest even and
/// NaN to a NaN. Six instructions a register become three, by AVX-512 VNNI, if the floats are
/// results of arithmetic. Otherwise nothing changes. Numbers and infinities have the same bits; of
/// a NaN the payload may be another one.
///
/// Before: a module for the host, optimised. Half a unit less one and the last kept bit are added
/// to the word. A choice takes something else where the float is a NaN.
///
/// After: one sum of four products of bytes has both addends. It saturates at 32 bits, so that a
/// positive NaN stays one. Words of negative NaNs are bounded before.
void round_halves(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
