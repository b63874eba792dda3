// How wide loads may be.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Bytes an element of the widest input.
int widest_input(const Graph& graph);
/// Bytes that a lane loads at once at most. Where the target has words (Target::words), bf16 that
/// become floats and bytes that are summed up are loaded by words. Sums of bytes by columns, scans
/// and all others have the target's own (Target::vector_bytes).
int load_bytes(const Graph& graph, const Target& target);
/// ScanPlan::range_width: two halves where these are floats. Steps across lanes are then half as
/// many an element (docs/decisions/0031-words.md). That is worth more than what takes halves of
/// words apart and puts them together.
int range_width_of(const Graph& graph, const Target& target);
/// ScanPlan::range_load: two of bf16, which become floats sooner than one by itself; two of f16 do
/// not.
int range_load_of(const Graph& graph, const Target& target);
/// Elements of each input that a lane can load at once, in loads of so many bytes at most. Callers
/// pass the pointers' alignment where the target's loads need one.
int widest_load(const Graph& graph, const Target& target, int bytes_at_most);

/// Elements of a load: that all pointers allow, and that edges make room for. The latter are more
/// where one input alone may begin anywhere.
struct Widest {
  int aligned = 1, peeled = 1;
};

/// Loads in flight beyond which no target gains: more would only be code.
inline constexpr int kDeepest = 64;

}  // namespace chainfold::codegen
