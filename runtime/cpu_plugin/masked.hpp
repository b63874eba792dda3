// Masked loads and stores on processors of AVX and AVX2, whose masks are the signs of words.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Before: a module for the host, optimised, so that masks which do not depend on data are
/// constants. Nothing changes where the host has AVX-512BW, or no AVX.
///
/// After: masked accesses are of these kinds.
///
///     elements of 1 or 2 bytes, loaded     a masked load of words, and single loads of the
///     under a known mask                   elements of words that are loaded in part
///     the same under another mask          a call of one function of the module
///     words and pairs of words,            one access a register, under a mask that LLVM does
///     under a mask that is not known       not know
///     stores of bytes and halves, and      as they were
///     accesses of less than a register
///
/// LLVM 19 would load elements of one or two bytes one by one. It also takes some masks for all set
/// where it finds out that no lane of a register can be. Such a mask is in use both whole and by
/// constants, as those of rows that may not exist.
void split_masked(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
