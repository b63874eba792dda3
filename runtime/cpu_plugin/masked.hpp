// Masked loads and stores on processors of AVX and AVX2, whose masks are the signs of words.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Before: a module for the host, optimised, so that masks which do not depend on data are
/// constants. Nothing changes where the host has AVX-512, or no AVX.
///
/// After: masked loads of elements of one or two bytes under known masks are masked loads of words
/// and, of words that are loaded in part, loads of single elements; LLVM 19 would load all their
/// elements one by one. Other masked loads and stores are of one register each, under masks that
/// LLVM knows nothing of: it takes some masks for all set of which it finds out that no lane of a
/// register can be (one mask in use whole and by constants, as those of rows that may not exist).
void split_masked(llvm::Module& module);

}  // namespace chainfold::runtime::cpu
