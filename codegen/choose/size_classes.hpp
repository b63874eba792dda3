// Size classes: launches of few elements have plans of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The size class of a launch: PlanRequest::size_limit, the same for all launches of a class.
/// Defaults differ by it:
/// - The whole input, folds on a GPU: some hundred kilobytes are one cluster's, some megabytes have
///   small blocks, some hundreds few parts.
/// - Segments, folds on a GPU: few are not staged where rows read wide loads, and few long ones
///   have a block or a cluster each.
/// - Columns on a GPU: few rows of many columns have blocks of few warps.
/// - Folds on a CPU: where a matrix is in the caches, blocks stay at their columns. Where all
///   elements are, threads do not ask for what comes next.
/// - The whole input, scans on a GPU: few tiles a multiprocessor are small ones, so that they fill
///   the device.
/// - The whole input, scans on a CPU: what one thread scans before others wake up is that thread's.
///   A few tiles a thread are small ones, and outputs may stay in the caches.
/// - Segments, scans on a CPU: threads share long ones unless these are many.
std::int64_t size_class_of(const Graph& graph, const Target& target, std::int64_t segment,
                           std::int64_t elements);
/// The same, with what element_classes() gave: for callers that ask at each launch.
std::int64_t size_class_of(const Graph& graph, const Target& target,
                           const std::vector<std::int64_t>& classes, std::int64_t segment,
                           std::int64_t elements);
/// Whether launches of few elements, a segment of `segment` (or as many columns) or more, have a
/// size class of their own; `classes` as element_classes() gave them.
bool has_few_class(const Graph& graph, const Target& target,
                   const std::vector<std::int64_t>& classes, std::int64_t segment);
/// The size classes of launches of `least`, `least + step`, ... elements, `most` at most,
/// ascending. The class of any number of elements (0) is last. The time is in proportion to the
/// classes that there are, not to the elements.
std::vector<std::int64_t> size_classes_between(const Graph& graph, const Target& target,
                                               const std::vector<std::int64_t>& classes,
                                               std::int64_t segment, std::int64_t least,
                                               std::int64_t most, std::int64_t step);
/// The limits of the size classes of launches without segments, or of a CPU's folds, ascending.
std::vector<std::int64_t> element_classes(const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
