// How wide loads may be.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Bytes an element of the widest input.
int widest_input(const Graph& graph);
/// Bytes that a lane loads at once at most: words of bf16 that become floats, and of bytes that are
/// summed up but not by columns, where the target says so; else the target's own. Not of scans.
int load_bytes(const Graph& graph, const Target& target);
/// ScanPlan::range_width: two halves where these are floats. Then steps across lanes are half as
/// many an element, which is worth more than what takes halves of words apart and puts them
/// together (a Zen 4, in a cache, ns an element of f16 0.195 and 0.178, of bf16 0.24 and 0.15).
int range_width_of(const Graph& graph, const Target& target);
/// ScanPlan::range_load: two of bf16, which become floats sooner than one by itself; f16 do not.
int range_load_of(const Graph& graph, const Target& target);
/// Elements of each input that a lane can load at once, in loads of so many bytes at most: the
/// pointers' alignment, where the target's loads need one.
int widest_load(const Graph& graph, const Target& target, int bytes_at_most);

/// Elements of a load: of those that all pointers allow, and of those that edges make room for,
/// which are more where one input alone may begin anywhere.
struct Widest {
  int aligned = 1, peeled = 1;
};

/// Loads in flight beyond which no target gains: more would only be code.
inline constexpr int kDeepest = 64;

}  // namespace chainfold::codegen
