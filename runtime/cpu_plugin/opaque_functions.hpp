// Functions that LLVM's passes shall not know.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Makes llvm.exp, llvm.log and llvm.pow plain functions without effects, so that passes behind
/// neither evaluate them, nor make vectors of one lane's calls or the other way round, nor know
/// better ways to some powers: results would depend on which passes run. Such ways are for before.
void hide_functions(llvm::Module& module);
/// And back.
///
/// Before: what hide_functions() left, optimised. After: intrinsics, as they were.
void show_functions(llvm::Module& module);

/// Whether the module calls llvm.pow.
bool has_powers(const llvm::Module& module);

}  // namespace chainfold::runtime::cpu
