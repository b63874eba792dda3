#include "registers.hpp"

#include <llvm/Support/MathExtras.h>

#include <numeric>
#include <utility>

namespace chainfold::runtime::cpu {

int register_lanes(const llvm::FixedVectorType& type) {
  return kRegisterBits / static_cast<int>(type.getElementType()->getPrimitiveSizeInBits());
}

int registers_of(const llvm::Type& type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
  if (vector == nullptr) return 0;
  const auto bits = vector->getNumElements() * vector->getElementType()->getPrimitiveSizeInBits();
  return static_cast<int>(llvm::divideCeil(bits.getFixedValue(), kRegisterBits));
}

int float_registers(const llvm::Type& type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(&type);
  if (vector == nullptr) return 0;
  const llvm::Type* element = vector->getElementType();
  if (!element->isFloatTy() && !element->isDoubleTy()) return 0;
  const unsigned lanes = vector->getNumElements();
  const auto of_register = static_cast<unsigned>(register_lanes(*vector));
  if (lanes % of_register != 0 || !llvm::isPowerOf2_32(lanes / of_register)) return 0;
  return static_cast<int>(lanes / of_register);
}

llvm::Value* slice(llvm::IRBuilder<>& at, llvm::Value* vector, int first, int count) {
  llvm::SmallVector<int> lanes(static_cast<std::size_t>(count));
  std::iota(lanes.begin(), lanes.end(), first);
  return at.CreateShuffleVector(vector, lanes);
}

llvm::Value* concatenate(llvm::IRBuilder<>& at, llvm::SmallVector<llvm::Value*> parts) {
  while (parts.size() > 1) {
    llvm::SmallVector<llvm::Value*> pairs;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      auto* type = llvm::cast<llvm::FixedVectorType>(parts[i]->getType());
      llvm::SmallVector<int> lanes(2 * std::size_t{type->getNumElements()});
      std::iota(lanes.begin(), lanes.end(), 0);
      pairs.push_back(at.CreateShuffleVector(parts[i], parts[i + 1], lanes));
    }
    parts = std::move(pairs);
  }
  return parts.front();
}

llvm::Value* by_registers(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> vectors,
                          llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> body) {
  const auto& type = *llvm::cast<llvm::FixedVectorType>(vectors.front()->getType());
  const int lanes = static_cast<int>(type.getNumElements()), count = register_lanes(type);
  llvm::SmallVector<llvm::Value*> results;
  for (int first = 0; first < lanes; first += count) {
    llvm::SmallVector<llvm::Value*> parts;
    for (llvm::Value* vector : vectors) parts.push_back(slice(at, vector, first, count));
    results.push_back(body(parts));
  }
  return concatenate(at, std::move(results));
}

}  // namespace chainfold::runtime::cpu
