#include "order.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <vector>

#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// Vector registers that a value fills; masks have registers of their own.
int registers_of(const llvm::Value& value) {
  const llvm::Type& type = *value.getType();
  return type.isIntOrIntVectorTy(1) ? 0 : cpu::registers_of(type);
}

/// The most registers that values of the block fill at a time, in the order in which it stands.
int pressure(llvm::BasicBlock& block) {
  llvm::DenseMap<const llvm::Value*, const llvm::Instruction*> last_uses;
  for (llvm::Instruction& instruction : block)
    for (llvm::Value* operand : instruction.operands()) last_uses[operand] = &instruction;
  auto ends = [&](const llvm::Instruction& value) {  // within the block
    return llvm::all_of(value.users(), [&](const llvm::User* user) {
      const auto* use = llvm::cast<llvm::Instruction>(user);
      return use->getParent() == &block && !llvm::isa<llvm::PHINode>(use);
    });
  };
  int live = 0, most = 0;
  for (llvm::Instruction& instruction : block) {
    live += registers_of(instruction);
    most = std::max(most, live);
    llvm::SmallPtrSet<llvm::Value*, 4> seen;
    for (llvm::Value* operand : instruction.operands()) {
      auto* value = llvm::dyn_cast<llvm::Instruction>(operand);
      if (value == nullptr || value->getParent() != &block || !seen.insert(value).second) continue;
      if (last_uses.lookup(value) == &instruction && ends(*value)) live -= registers_of(*value);
    }
    if (instruction.use_empty()) live -= registers_of(instruction);
  }
  return most;
}

bool computes(const llvm::Instruction& instruction) {
  return llvm::isa<llvm::FixedVectorType>(instruction.getType()) &&
         !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects() &&
         !llvm::isa<llvm::PHINode>(instruction);
}

}  // namespace

void place_behind_operands(llvm::BasicBlock& block,
                           llvm::function_ref<bool(const llvm::Instruction&)> moves) {
  // Each instruction that stays, with those placed behind it; the first list stays empty.
  std::vector<std::vector<llvm::Instruction*>> order(1);
  llvm::DenseMap<llvm::Instruction*, std::size_t> place;
  for (llvm::Instruction& instruction : block) {
    std::size_t last = 0;
    for (llvm::Value* operand : instruction.operands())
      if (auto* before = llvm::dyn_cast<llvm::Instruction>(operand); before != nullptr)
        last = std::max(last, place.lookup(before));  // 0 from another block
    // Values of a loop or a branch (phis) stand before all other instructions.
    if (!moves(instruction) || last == 0 || llvm::isa<llvm::PHINode>(order[last].front())) {
      order.emplace_back();
      last = order.size() - 1;
    }
    order[last].push_back(&instruction);
    place[&instruction] = last;
  }
  for (const auto& run : order)
    for (llvm::Instruction* instruction : run) instruction->moveBefore(block, block.end());
}

void order_by_operands(llvm::Function& function) {
  if (vector_bits(function) < kRegisterBits) return;
  // Twice as many registers as there are: a load that is folded into its use needs none, and LLVM's
  // schedulers manage somewhat more (docs/tuned-values.md).
  constexpr int kMost = 2 * kRegisters;
  for (llvm::BasicBlock& block : function)
    if (pressure(block) > kMost) place_behind_operands(block, computes);
}

}  // namespace chainfold::runtime::cpu
