// Scans of short integers by words.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

/// The same graph, whose scans by min and max of integers of one or two bytes are of words. It is
/// for targets whose lanes have words (Target::lane_words).
Graph with_wide_scans(const Graph& graph);

}  // namespace chainfold::codegen
