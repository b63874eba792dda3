// What a plan takes, estimated without compiling or running it.
//
// The estimate reads the program alone, so every strategy is judged by the same few laws, whose
// constants stand in Target::rates:
//   memory   once each array that a launch loads from and once each that it stores to, at the rate
//            of memory; loads slower in proportion where those that resident warps have under way
//            are fewer than what keeps memory busy (Little's law); scratch, which lies in a nearer
//            cache, less so;
//   issue    instructions of all warps, weighted by the slots that their pipe takes, over what the
//            processors issue, or what the resident warps can keep issuing;
//   launches a fixed time each.
// A launch takes the longer of the first two. Residency follows from warps, shared memory and
// registers, the latter from the lifetimes of values. Trip counts come from a walk through the
// first, a middle and the last warp of a block in the middle of the grid; what the walk cannot know
// (a trip count from data, the side of a branch) it takes at its least. Conflicts of banks, partly
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

/// What one launch asks of a processor.
struct LaunchEstimate {
  double blocks = 0;         ///< of the grid
  double resident = 0;       ///< blocks that a processor holds at once
  double slots = 0;          ///< of issue, a block
  double bytes_ahead = 0;    ///< loads that a block has under way at its best
  int registers = 0;         ///< a thread
  double memory_cycles = 0;  ///< of a processor, for the launch
  double issue_cycles = 0;
};

struct PlanEstimate {
  double cycles = 0;  ///< of a processor, for all launches
  std::vector<LaunchEstimate> launches;
};

/// For `elements` elements in segments (or columns) of the plan's size, without gaps.
PlanEstimate estimate(const Compiled& compiled, const Graph& graph, const Target& target,
                      std::int64_t elements);

/// A plan that is estimated to take more than so many times what the default takes is not worth
/// compiling.
inline constexpr double kHopeless = 2;

}  // namespace chainfold::codegen
