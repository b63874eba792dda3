#include "halves.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <cstdint>
#include <utility>

#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

constexpr std::uint32_t kLastKept = 0x10000, kQuiet = 0x400000, kHalfLessOne = 0x7FFF;
/// The products of the bytes of kBytes with those of kFactors, but for the third, add up to
/// kHalfLessOne: 255 * 127 + 255 + 127. The third one is the last kept bit.
constexpr std::uint32_t kBytes = 0x7F00FFFF, kFactors = 0x0101017F;
/// The largest negative word to which half a unit can be added.
constexpr std::uint32_t kMost = 0xFFFF7FFF;

/// Whether a NaN of this value is a quiet one, whatever its operands' were.
bool is_arithmetic(const llvm::Value* value) {
  const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
  if (instruction == nullptr) return false;
  switch (instruction->getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv: return true;
    case llvm::Instruction::Call: {
      const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
      return call != nullptr && (call->getIntrinsicID() == llvm::Intrinsic::fma ||
                                 call->getIntrinsicID() == llvm::Intrinsic::sqrt);
    }
    default: return false;
  }
}

/// The float that `choice` rounds, or null.
llvm::Value* rounded_by(llvm::Instruction& choice) {
  using namespace llvm::PatternMatch;
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(choice.getType());
  if (type == nullptr || !type->getElementType()->isIntegerTy(32)) return nullptr;
  llvm::Value *tested = nullptr, *bits = nullptr, *sum = nullptr, *left = nullptr, *right = nullptr;
  llvm::FCmpInst::Predicate predicate{};
  if (!match(&choice, m_Select(m_FCmp(predicate, m_Value(tested), m_Value(right)),
                               m_Or(m_Value(bits), m_SpecificInt(kQuiet)), m_Value(sum))))
    return nullptr;
  if (predicate != llvm::FCmpInst::FCMP_UNO || (right != tested && !match(right, m_AnyZeroFP())))
    return nullptr;
  llvm::Value* value = nullptr;
  if (!match(bits, m_BitCast(m_Value(value))) || !is_arithmetic(value)) return nullptr;
  // Of a float to which 0 is added, LLVM tests the float before the addition.
  if (value != tested && !match(value, m_c_FAdd(m_Specific(tested), m_AnyZeroFP()))) return nullptr;
  const auto odd = m_And(m_LShr(m_Specific(bits), m_SpecificInt(16)), m_One());
  if (!match(sum, m_Add(m_Value(left), m_Value(right)))) return nullptr;
  for (int turn = 0; turn < 2; ++turn, std::swap(left, right)) {
    if (match(left, odd) && match(right, m_Add(m_Specific(bits), m_SpecificInt(kHalfLessOne))))
      return value;
    if (match(right, m_Specific(bits)) && match(left, m_Add(odd, m_SpecificInt(kHalfLessOne))))
      return value;
    if (match(right, m_SpecificInt(kHalfLessOne)) && match(left, m_c_Add(odd, m_Specific(bits))))
      return value;
  }
  return nullptr;
}

llvm::Value* of_register(llvm::IRBuilder<>& at, llvm::Value* bits) {
  auto* type = bits->getType();
  const auto all = [&](std::uint32_t value) { return llvm::ConstantInt::get(type, value); };
  llvm::Value* bytes = at.CreateOr(at.CreateAnd(bits, all(kLastKept)), all(kBytes));
  llvm::Value* bounded = at.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bits, all(kMost));
  return at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusds_512, {},
                            {bounded, bytes, all(kFactors)});
}

void rewrite(llvm::Instruction& choice, llvm::Value* value) {
  llvm::IRBuilder<> at(&choice);
  llvm::Value* bits = at.CreateBitCast(value, choice.getType());
  choice.replaceAllUsesWith(by_registers(at, bits, [&](llvm::ArrayRef<llvm::Value*> registers) {
    return of_register(at, registers.front());
  }));
  choice.eraseFromParent();
}

}  // namespace

void round_halves(llvm::Module& module) {
  if (!host().has("avx512vnni")) return;
  for (llvm::Function& function : module) {
    if (vector_bits(function) < kRegisterBits) continue;
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
        llvm::Value* value = rounded_by(instruction);
        if (value != nullptr && float_registers(*value->getType()) > 0) rewrite(instruction, value);
      }
    }
  }
}

}  // namespace chainfold::runtime::cpu
