// The interpreter: the definition of what a Program means, lane by lane.
//
// Each warp is a resumable machine with an explicit stack of region frames. So any scheduler can
// run warps of any blocks that have started, in any order. Shadow state finds what hardware hides:
// - reads of uninitialised shared memory or scratch
// - races of warps between barriers and of blocks within a launch
// - accesses outside a buffer
// - barriers that not all warps reach
// - waits for what no block publishes
// - inputs that are read after an output was stored in their place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// In which order runnable warps take their steps.
enum class Schedule : std::uint8_t { in_order, reversed, random };

struct InterpOptions {
  int arch = 90;  ///< which rounding model float mma follows
  Schedule schedule = Schedule::in_order;
  std::uint64_t seed = 0;   ///< of Schedule::random
  int resident_blocks = 4;  ///< blocks in flight at once; at least 1
  /// If not empty, the only blocks of each launch that run, ascending. What the others would have
  /// left is what memory held before, which counts as written. Slots that they would have published
  /// count as published. A block may take one ticket then, which is its number.
  std::vector<std::int64_t> blocks{};
};

/// Memory behind one buffer of the program: host bytes, aligned as the buffer declares. Scratch,
/// outputs and carry_out start out poisoned, unless a later launch is run alone. Only inputs share
/// memory, and an output of a program in place with inputs of its element's size that begin where
/// it does.
struct InterpBuffer {
  void* data = nullptr;
  std::int64_t elements = 0;  ///< accesses outside [0, elements) are errors
};

/// Runs all launches (or only launch `only`, if not negative) of a program that passed `verify`.
/// `buffers` has one entry a program buffer, `params` one slot a parameter. Throws InternalError on
/// an access out of bounds, a misaligned wide access, a read of poison or a race. It also does on a
/// wait that names a wrong publisher, and on a deadlock. The error names launch, block, warp, lane
/// and the instruction's print. Cost: about a microsecond an instruction a warp.
void interpret(const Program& program, std::span<const InterpBuffer> buffers,
               std::span<const std::uint64_t> params, const InterpOptions& options = {},
               int only = -1);

}  // namespace chainfold::codegen
