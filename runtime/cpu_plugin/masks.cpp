#include "masks.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/MathExtras.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "additions.hpp"
#include "hidden.hpp"
#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// A shuffle that takes its operand `operation` in the lanes that are set, the other one elsewhere.
struct Choice {
  llvm::ShuffleVectorInst* shuffle;
  unsigned operation;
  std::vector<bool> lanes;
};

/// Whether the operation becomes one instruction that may write some lanes alone.
bool is_maskable(const llvm::Value* value) {
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (operation == nullptr) return false;
  switch (operation->getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FMul:
    case llvm::Instruction::Add:
    case llvm::Instruction::And:
    case llvm::Instruction::Or:
    case llvm::Instruction::Xor: return true;
    default: return false;
  }
}

/// Whether each register's lanes are all taken or all left: then there is nothing to choose in it.
bool takes_registers(const std::vector<bool>& lanes, std::size_t register_lanes) {
  for (std::size_t first = 0; first < lanes.size(); first += register_lanes)
    for (std::size_t lane = first; lane < first + register_lanes; ++lane)
      if (lanes[lane] != lanes[first]) return false;
  return true;
}

/// Nothing where the instruction is no choice by lanes of such an operation.
std::optional<Choice> choice_of(llvm::Instruction& instruction) {
  auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
  if (shuffle == nullptr || !shuffle->isSelect()) return std::nullopt;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(shuffle->getType());
  const auto bits = type->getElementType()->getPrimitiveSizeInBits();
  const int lanes = static_cast<int>(type->getNumElements());
  if ((bits != 32 && bits != 64) || lanes % register_lanes(*type) != 0) return std::nullopt;
  if (!llvm::isPowerOf2_32(static_cast<unsigned>(lanes))) return std::nullopt;
  // Of two such operations the one without other uses: of the other one all lanes are wanted.
  const bool second = shuffle->getOperand(1)->hasOneUse() && !shuffle->getOperand(0)->hasOneUse();
  for (const unsigned taken : {second ? 1U : 0U, second ? 0U : 1U}) {
    if (!is_maskable(shuffle->getOperand(taken))) continue;
    Choice choice{shuffle, taken, {}};
    for (const int source : shuffle->getShuffleMask())
      choice.lanes.push_back(source >= 0 && (source >= lanes) == (taken == 1));
    if (takes_registers(choice.lanes, static_cast<std::size_t>(register_lanes(*type))))
      return std::nullopt;
    return choice;
  }
  return std::nullopt;
}

void rewrite(Hidden& hidden, const Choice& choice) {
  const auto& type = *llvm::cast<llvm::FixedVectorType>(choice.shuffle->getType());
  const int lanes = register_lanes(type);
  llvm::IRBuilder<> at(choice.shuffle);
  llvm::Value* operation = choice.shuffle->getOperand(choice.operation);
  llvm::Value* other = choice.shuffle->getOperand(1 - choice.operation);
  // Units that add have all the other sums. As many rows of f64 have twice the registers, and the
  // units that multiply become the limit.
  auto* sum = llvm::dyn_cast<llvm::BinaryOperator>(operation);  // not if another choice had it, too
  if (host().multiplies_apart && sum != nullptr && sum->getOpcode() == llvm::Instruction::FAdd &&
      type.getElementType()->isFloatTy())
    operation = sum_by_product(hidden, *sum);
  // Register by register. Of a mask that is joined with known zeros, LLVM 19 uses the register as
  // it is, with any bits that stand above the mask.
  llvm::SmallVector<llvm::Value*> chosen;
  for (int first = 0; first < static_cast<int>(choice.lanes.size()); first += lanes) {
    const auto begin = choice.lanes.begin() + first;
    llvm::Value* mask = hidden.mask({begin, begin + lanes});
    chosen.push_back(
        at.CreateSelect(mask, slice(at, operation, first, lanes), slice(at, other, first, lanes)));
  }
  choice.shuffle->replaceAllUsesWith(concatenate(at, std::move(chosen)));
  choice.shuffle->eraseFromParent();
}

}  // namespace

void rewrite_choices(llvm::Function& function, Hidden& hidden) {
  if (vector_bits(function) < kRegisterBits) return;
  std::vector<Choice> choices;
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& instruction : block)
      if (std::optional<Choice> choice = choice_of(instruction))
        choices.push_back(*std::move(choice));
  for (const Choice& choice : choices) rewrite(hidden, choice);
}

}  // namespace chainfold::runtime::cpu
