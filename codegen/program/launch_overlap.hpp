// What blocks may do while the launch before theirs still runs.
#pragma once

#include <string_view>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Tells what of a launch has to wait for those before it.
class EarlyStart {
 public:
  /// Of the launch with this index.
  EarlyStart(const Program& program, std::size_t launch);
  /// Whether an instruction, or one in a region inside it, touches memory that launches before may
  /// still write or read. That is all memory but inputs. It includes inputs where those launches
  /// store to outputs that may lie in their memory. So it does where the first launch overlaps with
  /// what stands before the program, which may be anything.
  [[nodiscard]] bool has_to_wait(const Instr& instr) const;

 private:
  [[nodiscard]] bool touches(const Instr& instr) const;
  const Program& program_;
  bool inputs_change_ = false;
};

/// The rule about WaitForLaunch and LetNextStart that a launch breaks; empty: none. Sets `culprit`
/// to the instruction, if there is one.
std::string_view broken_wait(const Program& program, std::size_t launch, const Instr*& culprit);

}  // namespace chainfold::codegen
