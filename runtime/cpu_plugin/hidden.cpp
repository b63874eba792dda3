#include "hidden.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/Support/MathExtras.h>

#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// No instruction, but LLVM does not see that the result is `value`.
llvm::Value* hide(llvm::IRBuilder<>& at, llvm::Constant* value, const char* constraints) {
  auto* same = llvm::FunctionType::get(value->getType(), {value->getType()}, false);
  return at.CreateCall(same, llvm::InlineAsm::get(same, "", constraints, /*hasSideEffects=*/false),
                       {value});
}

}  // namespace

llvm::Value* Hidden::mask(const std::vector<bool>& lanes) {
  std::uint64_t bits = 0;
  for (std::size_t l = 0; l < lanes.size(); ++l) bits |= std::uint64_t{lanes[l]} << l;
  const auto count = static_cast<unsigned>(lanes.size());
  llvm::IRBuilder<> at = beginning();
  auto* type = llvm::FixedVectorType::get(at.getInt1Ty(), count);
  if (bits == 0) return llvm::Constant::getNullValue(type);
  if (bits == llvm::maskTrailingOnes<std::uint64_t>(count))
    return llvm::Constant::getAllOnesValue(type);
  llvm::Value*& mask = masks_[{count, bits}];
  if (mask == nullptr)
    mask = at.CreateBitCast(hide(at, at.getInt(llvm::APInt(count, bits)), "=r,0"), type);
  return mask;
}

llvm::Value* Hidden::ones(llvm::IRBuilder<>& at, llvm::FixedVectorType* type) {
  auto* of_register = llvm::FixedVectorType::get(type->getElementType(),
                                                 static_cast<unsigned>(register_lanes(*type)));
  llvm::Value*& ones = ones_[of_register];
  if (ones == nullptr) {
    llvm::IRBuilder<> first = beginning();
    ones = hide(first, llvm::ConstantFP::get(of_register, 1.0), "=v,0");
  }
  return concatenate(
      at, llvm::SmallVector<llvm::Value*>(static_cast<std::size_t>(float_registers(*type)), ones));
}

}  // namespace chainfold::runtime::cpu
