// From a Program to LLVM text: one function a launch, over a range of its thread blocks.
//
// A block is one warp of 32 lanes. So a lane value is a vector of 32 elements (one vector an
// element of a wide value), and a uniform value is a scalar. Masks are vectors of i1. The text is
// meant for the CPU plugin, which compiles it for the host at O3. It holds no fast-math flag and no
// llvm.fmuladd, so results do not depend on the host.
#pragma once

#include <string>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

struct LlvmSource {
  std::string text;                  ///< one module of textual LLVM IR (19)
  std::vector<std::string> symbols;  ///< the launches' functions, in launch order
};

/// The text of `program`. Each function has the signature
///     void name(i64 block_begin, i64 block_end, ptr args).
/// `args` holds one 8-byte slot a buffer (its pointer), then one a parameter (a scalar in the low
/// bytes). The function runs blocks [block_begin, block_end), each once, in order or in interleaved
/// streams (Launch::streams). Buffers of one call must not overlap where one of them is written.
/// Outputs of a program in place may lie on its inputs all the same. A block that waits for others
/// calls chainfold_yield, and one with shared arrays chainfold_arrays; the plugin defines both.
/// Pure. `program` must have passed verify(). Throws InternalError if a launch has more than one
/// warp a block, copies beside its own work or matrix instructions. The plans of a CPU target have
/// none.
LlvmSource emit_llvm(const Program& program);

}  // namespace chainfold::codegen
