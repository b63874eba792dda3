#include "opaque_functions.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

namespace chainfold::runtime::cpu {
namespace {

constexpr llvm::StringLiteral kPrefix = "hidden.";

bool is_hidden_kind(llvm::Intrinsic::ID id) {
  return id == llvm::Intrinsic::exp || id == llvm::Intrinsic::log || id == llvm::Intrinsic::pow;
}

void replace(llvm::Function& function, llvm::Function& by) {
  function.replaceAllUsesWith(&by);
  function.eraseFromParent();
}

}  // namespace

void hide_functions(llvm::Module& module) {
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    if (!is_hidden_kind(function.getIntrinsicID())) continue;
    auto* hidden =
        llvm::Function::Create(function.getFunctionType(), llvm::Function::ExternalLinkage,
                               kPrefix + function.getName(), module);
    hidden->setAttributes(function.getAttributes());
    replace(function, *hidden);
  }
}

void show_functions(llvm::Module& module) {
  for (llvm::Function& function : llvm::make_early_inc_range(module)) {
    llvm::StringRef name = function.getName();
    if (!name.consume_front(kPrefix)) continue;
    const llvm::Intrinsic::ID id = name.starts_with("llvm.exp.")   ? llvm::Intrinsic::exp
                                   : name.starts_with("llvm.log.") ? llvm::Intrinsic::log
                                                                   : llvm::Intrinsic::pow;
    replace(function, *llvm::Intrinsic::getDeclaration(&module, id, function.getReturnType()));
  }
}

bool has_powers(const llvm::Module& module) {
  return llvm::any_of(module, [](const llvm::Function& function) {
    return function.getIntrinsicID() == llvm::Intrinsic::pow;
  });
}

}  // namespace chainfold::runtime::cpu
