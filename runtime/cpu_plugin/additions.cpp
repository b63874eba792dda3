#include "additions.hpp"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <vector>

#include "hidden.hpp"
#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// Whether the sum is one instruction with a choice of the lanes that take it. A sum by product
/// fits into such a choice only if the other lanes keep one of its own operands.
bool is_chosen(const llvm::Instruction& sum) {
  return sum.hasOneUse() && llvm::isa<llvm::SelectInst>(sum.user_back());
}

/// The work of each kind of units, in operations on registers.
struct Work {
  int products = 0;   ///< of the units that multiply
  int additions = 0;  ///< of those that add, which shift and convert as well
};

void count_work(const llvm::Instruction& instruction, Work& work) {
  using llvm::Instruction;
  const int registers = registers_of(*instruction.getType());
  if (llvm::isa<llvm::FPExtInst, llvm::FPTruncInst, llvm::SIToFPInst, llvm::UIToFPInst,
                llvm::FPToSIInst, llvm::FPToUIInst>(instruction)) {
    work.additions += std::max(registers, registers_of(*instruction.getOperand(0)->getType()));
    return;
  }
  switch (instruction.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr: work.additions += registers; break;
    case Instruction::FMul: work.products += registers; break;
    case Instruction::Call: {
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::fma)
        work.products += registers;
      break;
    }
    default: break;
  }
}

void spread(Hidden& hidden, llvm::BasicBlock& block) {
  std::vector<llvm::BinaryOperator*> sums;
  int free = 0;  // additions, in registers
  Work work;
  for (llvm::Instruction& instruction : block) {
    count_work(instruction, work);
    const bool adds = instruction.getOpcode() == llvm::Instruction::FAdd ||
                      instruction.getOpcode() == llvm::Instruction::FSub;
    const int registers = float_registers(*instruction.getType());
    if (!adds || registers == 0 || is_chosen(instruction)) continue;
    free += registers;
    sums.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
  }
  const int share = std::min(free, (work.additions - work.products) / 2);
  if (share <= 0) return;
  // Evenly over the block: what is due, in registers times all additions.
  int due = 0;
  for (llvm::BinaryOperator* sum : sums) {
    const int registers = float_registers(*sum->getType());
    due += registers * share;
    if (2 * due < registers * free) continue;
    due -= registers * free;
    sum_by_product(hidden, *sum);
  }
}

}  // namespace

llvm::Value* sum_by_product(Hidden& hidden, llvm::BinaryOperator& sum) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum.getType());
  llvm::IRBuilder<> at(&sum);
  llvm::Value* added = sum.getOperand(1);
  if (sum.getOpcode() == llvm::Instruction::FSub) added = at.CreateFNeg(added);
  llvm::Value* same = at.CreateIntrinsic(type, llvm::Intrinsic::fma,
                                         {sum.getOperand(0), hidden.ones(at, type), added});
  sum.replaceAllUsesWith(same);
  sum.eraseFromParent();
  return same;
}

void spread_additions(llvm::Function& function, Hidden& hidden) {
  if (!host().multiplies_apart || vector_bits(function) < kRegisterBits) return;
  for (llvm::BasicBlock& block : function) spread(hidden, block);
}

}  // namespace chainfold::runtime::cpu
