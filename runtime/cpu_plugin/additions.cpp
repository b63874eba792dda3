#include "additions.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

#include <vector>

#include "hidden.hpp"
#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// Registers of a vector of floats that fills a power of two of them; else 0.
int float_registers(const llvm::Value& value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
  if (type == nullptr) return 0;
  const llvm::Type* element = type->getElementType();
  if (!element->isFloatTy() && !element->isDoubleTy()) return 0;
  if (type->getNumElements() % static_cast<unsigned>(register_lanes(*type)) != 0) return 0;
  const int count = registers(*type);
  return llvm::isPowerOf2_32(static_cast<unsigned>(count)) ? count : 0;
}

void by_product(Hidden& hidden, llvm::BinaryOperator& sum) {
  auto* type = llvm::cast<llvm::FixedVectorType>(sum.getType());
  llvm::IRBuilder<> at(&sum);
  llvm::Value* added = sum.getOperand(1);
  if (sum.getOpcode() == llvm::Instruction::FSub) added = at.CreateFNeg(added);
  sum.replaceAllUsesWith(at.CreateIntrinsic(type, llvm::Intrinsic::fma,
                                            {sum.getOperand(0), hidden.ones(at, type), added}));
  sum.eraseFromParent();
}

void spread(Hidden& hidden, llvm::BasicBlock& block) {
  std::vector<llvm::BinaryOperator*> sums;
  int additions = 0, products = 0;  // in registers
  for (llvm::Instruction& instruction : block) {
    const int count = float_registers(instruction);
    if (count == 0) continue;
    switch (instruction.getOpcode()) {
      case llvm::Instruction::FAdd:
      case llvm::Instruction::FSub:
        additions += count;
        sums.push_back(llvm::cast<llvm::BinaryOperator>(&instruction));
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
    const int count = float_registers(*sum);
    due += count * share;
    if (2 * due < count * additions) continue;
    due -= count * additions;
    by_product(hidden, *sum);
  }
}

}  // namespace

void spread_additions(llvm::Module& module) {
  if (!host().multiplies_apart || host().vector_bits < kRegisterBits) return;
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    Hidden hidden(function);
    for (llvm::BasicBlock& block : function) spread(hidden, block);
  }
}

}  // namespace chainfold::runtime::cpu
