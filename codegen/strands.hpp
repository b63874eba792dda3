// Strands: the places of memory that a CPU's thread reads in turn.
//
// A core has as many lines of a run on their way as its prefetchers reach ahead, which is less than
// it could have. Two threads of a Zen 4 that only read get 27 to 36 GB/s, as the host lets them, of
// one run each; of four or eight in turn, up to a KiB of each, 32 to 48. What is read of a place
// before the next one's turn is some KiB at most, or prefetchers begin anew; two runs within a page
// are taken for none (2 KiB rows read eight in turn 0.63 of what one run gives); and runs that lie
// a multiple of 4 KiB apart compete for the same sets of the caches, so strands have an odd number
// of blocks or batches. Results do not depend on where blocks are taken; a fold whose loads are
// dealt to strands takes its elements in another order, so folds in order have one.
#pragma once

#include "chainfold/codegen/plan.hpp"
#include "chainfold/codegen/target.hpp"

namespace chainfold::codegen {

/// Bytes from which on it is worth to read in several places: of a range of blocks, and of the
/// elements of a loop, whose strands end with it.
inline constexpr std::int64_t kStrandBytes = 256 * 1024, kLoopStrandBytes = 128 * 1024;

/// How many places there are. Of rows without a loop they are of blocks (Launch::strands), of
/// columns a batch's rows, and else a batch's loads.
int strands_of(const Plan& plan, const Graph& graph, const Target& target);

/// Bytes of all inputs that a warp's tile of rows takes.
std::int64_t tile_bytes(const Plan& plan, const Graph& graph);

}  // namespace chainfold::codegen
