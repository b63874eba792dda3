// Questions about graphs.
#pragma once

#include <optional>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// Whether the graph has a scan, and so, it may be, outputs with a value an element.
bool has_scans(const Graph& graph);
/// Whether some fold takes its elements in their order.
bool needs_order(const Graph& graph);
/// Whether some fold has one that costs less (Fold::quick).
bool has_quick_folds(const Graph& graph);
/// For every node whether it is of this kind or depends on one that is.
std::vector<bool> depending_on(const Graph& graph, NodeKind kind);
/// Whether two nodes are one fold, and so name one entry of Graph::folds if their folds are equal.
/// They may be two results of a fold of the segment. Or they are such a fold and the inclusive
/// forward scan of the same elements, whose last value it is.
bool share_fold(const Node& a, const Node& b);
/// Whether a scan names this entry of the graph's folds.
bool is_scanned(const Graph& graph, int fold);
/// Of each of the graph's folds how elements see it as they go on; none, where none does.
std::vector<std::optional<ScanForm>> scan_forms(const Graph& graph);
/// Which folds are broadcast to the elements of their segments.
std::vector<bool> broadcast_folds(const Graph& graph);
/// Whether any are.
bool broadcasts(const Graph& graph);
/// Whether elements read how many their segment has.
bool elements_read_extent(const Graph& graph);
/// Whether values of segments do.
bool segments_read_extent(const Graph& graph);
/// Whether some fold or element asks where in its segment it is.
bool reads_index(const Graph& graph);
/// Whether some scan runs backward.
bool scans_backward(const Graph& graph);
/// Whether some scans run forward and others backward.
bool scans_both_ways(const Graph& graph);
inline bool has_columns(const Graph& graph) {
  return graph.partition.kind == Partition::Kind::columns;
}

/// Whether arrays tell where segments begin and end.
inline bool has_offsets(const Graph& graph) {
  return graph.partition.kind == Partition::Kind::offsets;
}
/// Whether a condition tells where segments begin, and the launch how many there are.
inline bool has_heads(const Graph& graph) { return graph.partition.kind == Partition::Kind::heads; }
/// Whether some input has a bit for each value (InputAccess).
bool has_packed(const Graph& graph);
/// Whether data tell the segments, either way.
inline bool is_ragged(const Graph& graph) { return has_offsets(graph) || has_heads(graph); }

}  // namespace chainfold::codegen
