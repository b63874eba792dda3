// Operations in some lanes alone, by the masks that AVX-512 has for them.
#pragma once

namespace llvm {
class Function;
}

namespace chainfold::runtime::cpu {

class Hidden;

/// Where known lanes take an operation's result and the others another value, lets the operation
/// write those lanes alone, with the same values, if the host has AVX-512DQ; else nothing. A choice
/// of whole registers needs no mask and is left alone.
///
/// Before: a function for the host, optimised: such a choice of known lanes is a shuffle of two
/// vectors, which LLVM 19 looks through, so that the operation and the choice stay two instructions
/// and shuffles behind them become more. After: the choice is by a mask in a register that LLVM
/// knows nothing of, and one instruction with the operation; sums of f32 among these are by the
/// units that multiply, where those are others (additions.hpp).
void rewrite_choices(llvm::Function& function, Hidden& hidden);

}  // namespace chainfold::runtime::cpu
