// The rules that an instruction of a program keeps by itself: the types of its operands and
// results, what it may touch, and how. Which values it sees is not looked at here
// (verify.cpp).
#pragma once

#include <string_view>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Where a rule is broken: null where no launch or instruction is to blame.
struct Broken {
  const Program& program;
  const Launch* launch = nullptr;
  const Instr* instr = nullptr;
};
/// Throws the InternalError that names the place and the rule, with the program's text.
[[noreturn]] void fail(const Broken& where, std::string_view rule);

/// Checks the instructions of a program one after the other.
class OperationRules {
 public:
  explicit OperationRules(const Program& program)
      : program_(program), constant_(program.values.size()) {}
  /// Its operands are defined by instructions that were checked before. Throws InternalError.
  void check(const Launch& launch, const Instr& instr);

 private:
  const Program& program_;
  std::vector<const Const*> constant_;  // one a value: the constant that it is
};

}  // namespace chainfold::codegen
