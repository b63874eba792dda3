// Functions that LLVM's passes shall not know.
#pragma once

namespace llvm {
class Module;
}

namespace chainfold::runtime::cpu {

/// Makes llvm.exp, llvm.log and llvm.pow plain functions without effects. Otherwise later passes
/// would evaluate them, turn calls for one lane into calls for vectors or back, and rewrite some
/// powers. Results would depend on which passes run. Powers are to be rewritten before this.
void hide_functions(llvm::Module& module);
/// The reverse.
///
/// Before: the module that hide_functions() left, optimised. After: intrinsics, as they were.
void show_functions(llvm::Module& module);

/// Whether the module calls llvm.pow.
bool has_powers(const llvm::Module& module);

}  // namespace chainfold::runtime::cpu
