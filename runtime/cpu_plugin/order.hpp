// Instructions in an order that fits the registers.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace llvm {
class BasicBlock;
class Function;
class Instruction;
}  // namespace llvm

namespace chainfold::runtime::cpu {

/// In basic blocks whose values are far more than the 32 registers of AVX-512 hold, places what
/// computes vectors directly behind the last of its operands. A batch loads all that it folds
/// first, and LLVM 19's schedulers keep close to that order; so loaded values would wait in memory
/// for their turn (sums of 4096 f16 took twice as long). Loads and all else that touches memory
/// stay in their order. Where everything fits, rows side by side hide each other's latencies best
/// and nothing moves; nor does it on hosts without AVX-512, whose sums gained nothing and whose
/// scans lost 2 to 5 %.
///
/// Before: a function for the host, optimised. After: the same values; a tree of n additions has
/// about log2(n) of them under way.
void order_by_operands(llvm::Function& function);

/// Moves the block's instructions that `moves` names, which touch no memory, directly behind the
/// last of their operands, in the order they had; those stay that need nothing of the block but the
/// values of its loop.
void place_behind_operands(llvm::BasicBlock& block,
                           llvm::function_ref<bool(const llvm::Instruction&)> moves);

}  // namespace chainfold::runtime::cpu
