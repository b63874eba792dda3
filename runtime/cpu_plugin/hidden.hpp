// Constants of a function whose values LLVM does not know.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace chainfold::runtime::cpu {

/// Masks, and vectors of ones, each in a register from the function's beginning on. LLVM would fold
/// the uses of a constant that it knows. Choices would become part of the shuffles behind them, and
/// products with ones would vanish.
class Hidden {
 public:
  explicit Hidden(llvm::Function& function) : entry_(function.getEntryBlock()) {}

  /// Which of up to 64 lanes are set. None and all of them stay known.
  llvm::Value* mask(const std::vector<bool>& lanes);
  /// Ones of a type whose lanes fill a power of two of registers.
  llvm::Value* ones(llvm::IRBuilder<>& at, llvm::FixedVectorType* type);

 private:
  [[nodiscard]] llvm::IRBuilder<> beginning() { return {&entry_, entry_.getFirstInsertionPt()}; }

  llvm::BasicBlock& entry_;
  llvm::DenseMap<std::pair<unsigned, std::uint64_t>, llvm::Value*> masks_;
  llvm::DenseMap<llvm::Type*, llvm::Value*> ones_;
};

}  // namespace chainfold::runtime::cpu
