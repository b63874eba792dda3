#include "additions.hpp"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

#include "hidden.hpp"
#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// Whether it is one instruction with the choice of the lanes that take it, into which a product
/// and sum only fits if the other lanes keep one of its own operands.
bool is_chosen(const llvm::Instruction& sum) {
  return sum.hasOneUse() && llvm::isa<llvm::SelectInst>(sum.user_back());
}

void spread(Hidden& hidden, llvm::BasicBlock& block) {
  std::vector<llvm::BinaryOperator*> sums;
  int additions = 0, products = 0;  // in registers
  for (llvm::Instruction& instruction : block) {
    const int count = float_registers(*instruction.getType());
    if (count == 0) continue;
    switch (instruction.getOpcode()) {
      case llvm::Instruction::FAdd:
      case llvm::Instruction::FSub:
        additions += count;
        if (!is_chosen(instruction)) sums.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
        break;
      case llvm::Instruction::FMul: products += count; break;
      case llvm::Instruction::Call:
        if (llvm::cast<llvm::CallInst>(instruction).getIntrinsicID() == llvm::Intrinsic::fma)
          products += count;
        break;
      default: break;
    }
  }
  // Evenly over the block: what is due, in registers times all additions.
  const int share = (additions - products) / 2;
  if (share <= 0) return;
  int due = 0;
  for (llvm::BinaryOperator* sum : sums) {
    const int count = float_registers(*sum->getType());
    due += count * share;
    if (2 * due < count * additions) continue;
    due -= count * additions;
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
  if (!host().multiplies_apart || host().vector_bits < kRegisterBits) return;
  for (llvm::BasicBlock& block : function) spread(hidden, block);
}

}  // namespace chainfold::runtime::cpu
