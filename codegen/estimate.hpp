// What a plan takes, estimated without compiling or running it.
//
// The estimate reads the program alone, so the same few laws judge every strategy. Their constants
// stand in Target::rates:
//
//   memory    Each array that a launch loads from counts once, and so does each that it stores to.
//             Loads slow down in proportion where those of resident warps are too few to keep
//             memory busy (Little's law). Loads of scratch, in a nearer cache, slow down less.
//   issue     Instructions of all warps count by the slots that they take in their pipe. The
//             multiprocessors issue at their rate, or at what resident warps can keep issuing.
//   launches  Each takes a fixed time.
//
// A launch takes the longer of the first two. Residency follows from warps, shared memory and
// registers, the latter from the lifetimes of values. Trip counts come from a walk through a block
// in the middle of the grid: its first, a middle and its last warp. The walk takes at its least
// what it cannot know: a trip count from data, or the side of a branch. Conflicts of banks, partly
// used sectors, second-level caches and the waits of barriers are left out: they make real plans
// slower, never faster.
//
// An estimate is good for telling what is hopeless, not for choosing: it is off by up to a third
// either way.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// What one launch asks of a multiprocessor.
struct LaunchEstimate {
  double blocks = 0;         ///< of the grid
  double resident = 0;       ///< blocks that a multiprocessor holds at once
  double slots = 0;          ///< of issue, a block
  double bytes_ahead = 0;    ///< loads that a block has under way at its best
  int registers = 0;         ///< a thread
  double memory_cycles = 0;  ///< of a multiprocessor, for the launch
  double issue_cycles = 0;
};

struct PlanEstimate {
  double cycles = 0;  ///< of a multiprocessor, for all launches
  std::vector<LaunchEstimate> launches;
};

/// For `elements` elements in segments (or columns) of the plan's size, without gaps.
PlanEstimate estimate(const Compiled& compiled, const Graph& graph, const Target& target,
                      std::int64_t elements);

/// A plan that is estimated to take more than so many times what the default takes is not worth
/// compiling.
inline constexpr double kHopeless = 2;

}  // namespace chainfold::codegen
