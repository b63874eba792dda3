// Operations in some lanes alone, by the masks that AVX-512 has for them.
#pragma once

namespace llvm {
class Function;
}

namespace chainfold::runtime::cpu {

class Hidden;

/// Where known lanes take an operation's result and the others another value, lets the operation
/// write those lanes alone. The values are the same. Only functions with vectors of 512 bits are
/// changed (host.hpp). A choice of whole registers needs no mask and is left alone.
///
/// Before: a function for the host, optimised. Such a choice of known lanes is a shuffle of two
/// vectors. LLVM 19 looks through it, so that the operation and the choice stay two instructions
/// and shuffles behind them become more.
///
/// After: the choice is by a mask that LLVM does not know, and is one instruction with the
/// operation. Sums of f32 among these are by the units that multiply, where those are others
/// (additions.hpp).
void rewrite_choices(llvm::Function& function, Hidden& hidden);

}  // namespace chainfold::runtime::cpu
