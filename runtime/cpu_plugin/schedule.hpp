// Functions whose instructions LLVM's machine scheduler leaves in their order.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/OptBisect.h>

#include "compiler.hpp"

namespace llvm {
class Function;
}  // namespace llvm

namespace chainfold::runtime::cpu {

/// LLVM 19's scheduler takes loads for free of dependencies and moves all loads of a block to its
/// beginning. A load for one use does no harm, since the use then reads memory itself. But a value
/// with several uses (an element and, behind the mean, its deviation) needs a register, and goes to
/// the stack and back. So the scheduler skips functions with blocks that load more such floats than
/// AVX-512 has registers. It serves all others, some of which are slower without it
/// (docs/decisions/0023-below-llvm-ir.md, docs/tuned-values.md).
///
/// A compilation that is given up runs no pass that can be left out.
///
/// A compilation has one KeptOrder, as the gate of its LLVMContext, which asks it before passes of
/// code generation.
class KeptOrder final : public llvm::OptPassGate {
 public:
  explicit KeptOrder(const Effort& effort) : effort_(effort) {}
  /// Looks at a function as it goes to code generation.
  void look_at(const llvm::Function& function);

  [[nodiscard]] bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef description) override;

 private:
  const Effort effort_;
  llvm::StringSet<> functions_;  // as passes describe them
};

}  // namespace chainfold::runtime::cpu
