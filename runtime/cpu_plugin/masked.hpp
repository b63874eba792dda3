// Masked loads and stores on processors of AVX and AVX2, whose masks are the signs of words.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Before: a module for the host, optimised, so that masks which do not depend on data are
/// constants. Nothing changes where the host has AVX-512BW, or no AVX.
///
/// After: masked loads of elements of one or two bytes under known masks are masked loads of words
/// and, of words that are loaded in part, loads of single elements; LLVM 19 would load all their
/// elements one by one. Those under other masks are left to one function of the module. Loads and
/// stores of words under other masks are of one register each, and LLVM knows nothing of the masks:
/// it takes some for all set of which it finds out that no lane of a register can be (one mask in
/// use whole and by constants, as those of rows that may not exist). Less than a register stays as
/// it is, and so do stores of bytes and halves.
void split_masked(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
