// What makes waits between blocks end: the rules of Ticket, Publish and Await that types do not
// show. The proof stands at Await (program.hpp).
#pragma once

#include <optional>
#include <string_view>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

struct BrokenLookBack {
  const Instr* instr = nullptr;
  std::string_view rule;
};

/// The first instruction of a launch that breaks one of these rules:
/// - Tickets come from one counter.
/// - The ticket of an Await, an Overdue or a Publish that does not help is one that the block has
///   taken. It comes directly, or through branches and carried values that hold nothing but
///   tickets.
/// - On no path does an Await stand before such a Publish whose ticket is not known to be the
///   Await's or a later one.
/// - A buffer of counters or slots is accessed in that way alone.
///
/// The program's types and visibility must be right already.
std::optional<BrokenLookBack> find_broken_look_back(const Program& program, const Launch& launch);

}  // namespace chainfold::codegen
