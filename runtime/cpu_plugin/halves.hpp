// Floats rounded to bf16 by the instruction that x86 has for sums of products of bytes.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Replaces what rounds vectors of f32 to the upper halves of their words, to nearest even and NaN
/// to a NaN, by three instructions a register (AVX-512 VNNI) where there are six, if the floats are
/// results of arithmetic. Else nothing. Numbers and infinities have the same bits; of a NaN the
/// payload may be another one.
///
/// Before: a module for the host, optimised: half a unit less one and the last kept bit, added to
/// the word, and a choice of something else where the float is a NaN. After: one sum of four
/// products of bytes has both addends. It keeps within 32 bits, so that a positive NaN stays one,
/// and what negative ones may be is bounded before.
void round_halves(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
