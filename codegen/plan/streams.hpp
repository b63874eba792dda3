// How a CPU's thread reads memory: interleaved streams, which it reads in turn, and how far ahead
// it asks for what comes next.
//
// A core has as many lines of a run on their way as its prefetchers reach ahead. They stop at a
// page, and that is less than the core could have. Target::interleaved_streams says of which
// processors two runs in turn are worth it (docs/decisions/0015-interleaved-streams.md). What is
// read of one before the other's turn is some KiB at most, or prefetchers begin anew each time. Two
// runs within a page are taken for none, and a run is long, since it begins slowly. Results do not
// depend on where blocks are taken. A fold whose loads are dealt to streams takes its elements in
// another order, so folds in order have one.
//
// Threads of other processors get more of memory if they ask for lines some KiB ahead of their
// loads (Target::ahead_bytes, docs/decisions/0016-reading-ahead.md). Where all is in the caches
// that only costs, which scans do not notice. Folds of few elements are a size class of their own
// (cached_fold_limit).
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Bytes from which on interleaved streams pay: of a range of blocks, and of the elements of a
/// loop, whose streams end with it.
inline constexpr std::int64_t kStreamBytes = 256 * 1024, kLoopStreamBytes = 128 * 1024;

/// Parts, at most, of the rows of a matrix that is in a CPU's caches: more of them save less than a
/// second launch takes. Such matrices are read as one stream.
inline constexpr int kCpuFewBlocks = 8;

/// How many streams there are. Of rows without a loop they are of blocks (Launch::streams), of
/// columns a batch's rows, and else a batch's loads.
int streams_of(const Plan& plan, const Graph& graph, const Target& target);

/// Whether a CPU's threads are so many that each gets less of memory than it could take.
bool has_many_threads(const Target& target);
/// Whether folds, and scans of the whole input, had best ask ahead for what comes from memory:
/// those of few threads need not.
bool many_ask_ahead(const Target& target);
/// How many elements behind those that it reads a thread asks for where a launch's data comes from
/// memory (PlanHints::read_ahead). They are those of Target::ahead_bytes, of a matrix's long rows a
/// share.
std::int64_t ahead_of(const Plan& plan, const Graph& graph, const Target& target);

/// Bytes of all inputs that a warp's tile of rows takes.
std::int64_t tile_bytes(const Plan& plan, const Graph& graph);

}  // namespace chainfold::codegen
