#include "minima.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

#include <utility>

#include "host.hpp"
#include "order.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// The instruction's immediate: bit 0 asks for the larger, bit 2 for the result's own sign.
constexpr int kSmaller = 0b0100, kLarger = 0b0101;

llvm::Value* of_register(llvm::IRBuilder<>& at, bool larger, llvm::Value* a, llvm::Value* b) {
  auto* type = llvm::cast<llvm::FixedVectorType>(a->getType());
  const bool wide = type->getElementType()->isDoubleTy();
  auto* all = llvm::Constant::getAllOnesValue(at.getIntNTy(type->getNumElements()));
  constexpr int kRoundAsSet = 4;
  llvm::Value* ranged =
      at.CreateIntrinsic(type,
                         wide ? llvm::Intrinsic::x86_avx512_mask_range_pd_512
                              : llvm::Intrinsic::x86_avx512_mask_range_ps_512,
                         {a, b, at.getInt32(larger ? kLarger : kSmaller),
                          llvm::Constant::getNullValue(type), all, at.getInt32(kRoundAsSet)});
  // Of a number and a NaN the instruction takes the number; their sum is the NaN.
  return at.CreateSelect(at.CreateFCmpUNO(a, b), at.CreateFAdd(a, b), ranged);
}

void rewrite(llvm::IntrinsicInst& minimum) {
  if (float_registers(*minimum.getType()) == 0) return;
  llvm::IRBuilder<> at(&minimum);
  const bool larger = minimum.getIntrinsicID() == llvm::Intrinsic::maximum;
  minimum.replaceAllUsesWith(by_registers(at, {minimum.getArgOperand(0), minimum.getArgOperand(1)},
                                          [&](llvm::ArrayRef<llvm::Value*> registers) {
                                            return of_register(at, larger, registers[0],
                                                               registers[1]);
                                          }));
  minimum.eraseFromParent();
}

bool is_minimum(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  return call != nullptr && (call->getIntrinsicID() == llvm::Intrinsic::minimum ||
                             call->getIntrinsicID() == llvm::Intrinsic::maximum);
}

}  // namespace

void rewrite_minima(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (vector_bits(function) < kRegisterBits) continue;
    for (llvm::BasicBlock& block : function) {
      place_behind_operands(block, is_minimum);
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block))
        if (is_minimum(instruction)) rewrite(llvm::cast<llvm::IntrinsicInst>(instruction));
    }
  }
}

}  // namespace chainfold::runtime::cpu
