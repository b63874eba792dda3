#include "chainfold/codegen/choose/size_classes.hpp"

#include <algorithm>
#include <set>

#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

std::vector<std::int64_t> element_classes(const Graph& graph, const Target& target) {
  if (is_ragged(graph)) return {};  // stretches are as long as there are items for
  if (!has_scans(graph)) {
    std::vector<std::int64_t> classes;
    for (const std::int64_t most :
         {cluster_limit(graph, target), small_block_limit(graph, target),
          few_parts_limit(graph, target), few_columns_limit(graph, target),
          cached_fold_limit(graph, target)})
      if (most > 0) classes.push_back(most);
    return classes;
  }
  if (target.is_cpu()) {
    // Scans of both directions have no ranges.
    if (target.processors == 1 || scans_both_ways(graph)) return {};
    const std::int64_t alone = one_thread_limit(graph, target);
    std::vector<std::int64_t> classes{alone};
    for (const std::int64_t most :
         {small_cpu_tile_limit(graph, target), cached_output_limit(graph, target)})
      if (most > classes.back()) classes.push_back(most);
    return classes;
  }
  std::vector<std::int64_t> classes;
  for (const FewTiles& few : few_tiles(graph, target))
    classes.push_back(limit_of(few, graph, target));
  const std::int64_t most = small_tile_limit(graph, target);
  if (most > classes.back()) classes.push_back(most);
  return classes;
}

std::int64_t size_class_of(const Graph& graph, const Target& target,
                           const std::vector<std::int64_t>& classes, std::int64_t segment,
                           std::int64_t elements) {
  const bool one_warp = target.is_cpu();
  if (has_columns(graph) && !one_warp) return few_rows_limit(graph, target, segment, elements);
  if (segment != 0 && one_warp && has_scans(graph))
    return shared_segments_limit(graph, target, segment, elements);
  if (segment != 0 && !has_columns(graph) && !one_warp)
    return few_segments_limit(graph, target, segment, elements);
  const auto found = std::lower_bound(classes.begin(), classes.end(), elements);
  return found == classes.end() ? 0 : *found;
}

bool has_few_class(const Graph& graph, const Target& target,
                   const std::vector<std::int64_t>& classes, std::int64_t segment) {
  return size_class_of(graph, target, classes, segment, std::max<std::int64_t>(1, segment)) != 0;
}

std::vector<std::int64_t> size_classes_between(const Graph& graph, const Target& target,
                                               const std::vector<std::int64_t>& classes,
                                               std::int64_t segment, std::int64_t least,
                                               std::int64_t most, std::int64_t step) {
  if (most < least) return {};
  const std::int64_t steps = (most - least) / step;
  // A class changes behind its bounds alone, so both sides of each and both ends show all.
  std::set<std::int64_t> places{0, steps};
  std::vector<std::int64_t> bounds = segment_bounds(graph, target, segment, most);
  bounds.insert(bounds.end(), classes.begin(), classes.end());
  for (const std::int64_t bound : bounds) {
    if (bound < least) continue;
    const std::int64_t place = (bound - least) / step;
    if (place <= steps) places.insert(place);
    if (place < steps) places.insert(place + 1);
  }
  std::set<std::int64_t> found;
  for (const std::int64_t place : places)
    found.insert(size_class_of(graph, target, classes, segment, least + place * step));
  std::vector<std::int64_t> all(found.upper_bound(0), found.end());
  if (found.contains(0)) all.push_back(0);
  return all;
}

std::int64_t size_class_of(const Graph& graph, const Target& target, std::int64_t segment,
                           std::int64_t elements) {
  return size_class_of(graph, target, element_classes(graph, target), segment, elements);
}

}  // namespace chainfold::codegen
