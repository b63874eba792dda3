// Size classes: launches of few elements have plans of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The class of sizes that a launch belongs to where defaults differ by it: folds of the whole
/// input of a few hundred kilobytes are one cluster's, of some megabytes they have small blocks, of
/// some hundreds few parts; few segments are not staged where rows read wide loads, and long ones
/// have a block or a cluster each; few rows of many columns have blocks of few warps; a CPU's
/// blocks stay at their columns where a matrix is in its caches, and where folds are its threads do
/// not ask for what comes next; scans of the whole input of no more than a few tiles a block have
/// small tiles, so that they fill the device, what a CPU's thread scans before others wake up is
/// one thread's, and its threads share long segments unless these are many. Returns
/// PlanRequest::size_limit, the same for all launches of a class.
std::int64_t size_class_of(const Graph& graph, const Target& target, std::int64_t segment,
                           std::int64_t elements);
/// The same, with what element_classes() gave: for whoever asks at each launch.
std::int64_t size_class_of(const Graph& graph, const Target& target,
                           const std::vector<std::int64_t>& classes, std::int64_t segment,
                           std::int64_t elements);
/// Whether launches of few elements, a segment of `segment` (or as many columns) or more, are of a
/// class of their own; `classes` as element_classes() gave them.
bool has_few_class(const Graph& graph, const Target& target,
                   const std::vector<std::int64_t>& classes, std::int64_t segment);
/// The size classes that launches of `least`, `least + step`, ... and at most `most` elements fall
/// into, ascending, the one of any number of elements (0) last. Takes a time in proportion to the
/// classes that there are, not to the elements.
std::vector<std::int64_t> size_classes_between(const Graph& graph, const Target& target,
                                               const std::vector<std::int64_t>& classes,
                                               std::int64_t segment, std::int64_t least,
                                               std::int64_t most, std::int64_t step);
/// The classes of launches without segments, or of a CPU's folds: how many elements each has at
/// most, ascending.
std::vector<std::int64_t> element_classes(const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
