// Which barriers every warp of a block is sure to reach.
//
// A uniform value is one for its warp; warps of a block may still differ. A value is block-uniform
// if it comes from constants, parameters, the block's number, tickets, and memory at block-uniform
// places alone. Warp numbers, votes and lane values make it differ. A barrier must stand under
// block-uniform conditions and loop bounds only.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// The first condition or loop around a barrier that may differ between warps of a block, or null.
/// The program's types and visibility must be right already.
const Instr* find_divergent_barrier(const Program& program, const Launch& launch);

}  // namespace chainfold::codegen
