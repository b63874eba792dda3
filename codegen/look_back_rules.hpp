// What makes waits between blocks end: the rules of Ticket, Publish and Await that types do not
// show. The proof stands at Await (program.hpp).
#pragma once

#include <optional>
#include <string_view>

#include "chainfold/codegen/program.hpp"

namespace chainfold::codegen {

struct BrokenLookBack {
  const Instr* instr = nullptr;
  std::string_view rule;
};

/// The first instruction of a launch that breaks one of these rules: an Await's ticket is the
/// result of a Ticket itself; a Publish's is that of the last Ticket on every path to it; a buffer
/// of counters or slots is accessed in that way alone. The program's types and visibility must be
/// right already.
std::optional<BrokenLookBack> find_broken_look_back(const Program& program, const Launch& launch);

}  // namespace chainfold::codegen
