// Instructions in an order that fits the registers.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

namespace llvm {
class BasicBlock;
class Function;
class Instruction;
}  // namespace llvm

namespace chainfold::runtime::cpu {

/// Places each instruction that computes vectors directly behind the last of its operands. Only
/// basic blocks change whose values are far more than the 32 registers of AVX-512 hold, of
/// functions with vectors of 512 bits (docs/tuned-values.md). A batch loads all that it folds
/// first, and LLVM 19's schedulers keep close to that order. So loaded values would wait in memory
/// for their turn. Loads and all other instructions that touch memory stay in their order. Where
/// all values fit, nothing moves: rows side by side hide each other's latencies best.
///
/// Before: a function for the host, optimised. After: the same values; a tree of n additions has
/// about log2(n) of them under way.
void order_by_operands(llvm::Function& function);

/// Moves the block's instructions for which `moves` is true directly behind the last of their
/// operands, in the order they had. They must not touch memory. Instructions stay whose operands
/// are all from outside the block or values of its loop.
void place_behind_operands(llvm::BasicBlock& block,
                           llvm::function_ref<bool(const llvm::Instruction&)> moves);

}  // namespace chainfold::runtime::cpu
