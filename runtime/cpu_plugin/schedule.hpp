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

/// LLVM 19's scheduler takes loads for free of dependencies and moves all of a block to its
/// beginning. What is loaded for one use is no harm, as the use then reads memory itself; but
/// values that are used more than once (an element and, behind the mean, its deviation) need a
/// register each, and go to the stack and back. So it skips functions with blocks that load more
/// such floats than there are registers of AVX-512: mean and variance from cache, one core of a
/// Zen 4, of 64 f32 38 -> 48 GB/s, of 512 34 -> 59, of 64 f64 29 -> 51. Elsewhere it stays: sums of
/// 4096 f16 and scans lose 4 % without it.
///
/// What is given up runs no pass that can be left out.
///
/// One a compilation, as the gate of its LLVMContext, which asks before passes of code generation.
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
