#include "schedule.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/BasicBlock.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>

#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {

namespace {

/// Registers of the floats that the block loads and uses more than once. Integers are mostly words
/// that are taken apart at once.
int kept_loads(const llvm::BasicBlock& block) {
  int registers = 0;
  for (const llvm::Instruction& instruction : block) {
    const llvm::Type& type = *instruction.getType();
    if (llvm::isa<llvm::LoadInst>(instruction) && type.isFPOrFPVectorTy() &&
        instruction.hasNUsesOrMore(2))
      registers += registers_of(type);
  }
  return registers;
}

}  // namespace

void KeptOrder::look_at(const llvm::Function& function) {
  if (vector_bits(function) < kRegisterBits) return;
  const auto is_full = [](const llvm::BasicBlock& block) { return kept_loads(block) > kRegisters; };
  if (llvm::any_of(function, is_full))
    functions_.insert(("function (" + function.getName() + ")").str());
}

bool KeptOrder::shouldRunPass(llvm::StringRef pass, llvm::StringRef description) {
  if (effort_.is_given_up()) return false;
  return pass != "Machine Instruction Scheduler" || !functions_.contains(description);
}

}  // namespace chainfold::runtime::cpu
