#include "chainfold/codegen/choose/size_classes.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/scan_staged.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

std::vector<std::int64_t> element_classes(const Graph& graph, const Target& target) {
  if (!has_scans(graph)) {
    std::vector<std::int64_t> classes;
    for (const std::int64_t most :
         {most_of_cluster(graph, target), most_of_small_blocks(graph, target),
          most_of_few_parts(graph, target), most_of_few_columns(graph, target),
          most_of_near(graph, target)})
      if (most > 0) classes.push_back(most);
    return classes;
  }
  if (target.max_warps == 1) {
    // Scans of both directions have no ranges.
    if (target.processors == 1 || scans_both_ways(graph)) return {};
    const std::int64_t alone = most_of_one_thread(graph, target);
    std::vector<std::int64_t> classes{alone};
    for (const std::int64_t most :
         {most_of_small_cpu_tiles(graph, target), most_of_kept_outputs(graph, target)})
      if (most > classes.back()) classes.push_back(most);
    return classes;
  }
  std::vector<std::int64_t> classes;
  for (const FewTiles& few : few_tiles(graph)) classes.push_back(most_of(few, graph, target));
  const std::int64_t most = most_of_small_tiles(graph, target);
  if (most > classes.back()) classes.push_back(most);
  return classes;
}

std::int64_t most_elements_of(const Graph& graph, const Target& target,
                              const std::vector<std::int64_t>& classes, std::int64_t segment,
                              std::int64_t elements) {
  const bool one_warp = target.max_warps == 1;
  if (has_columns(graph) && !one_warp) return most_of_few_rows(graph, target, segment, elements);
  if (segment != 0 && one_warp && has_scans(graph))
    return most_of_shared_segments(graph, target, segment, elements);
  if (segment != 0 && !has_columns(graph) && !one_warp)
    return most_of_few_segments(graph, target, segment, elements);
  const auto found = std::lower_bound(classes.begin(), classes.end(), elements);
  return found == classes.end() ? 0 : *found;
}

bool has_few_class(const Graph& graph, const Target& target,
                   const std::vector<std::int64_t>& classes, std::int64_t segment) {
  return most_elements_of(graph, target, classes, segment, std::max<std::int64_t>(1, segment)) != 0;
}

std::int64_t most_elements_of(const Graph& graph, const Target& target, std::int64_t segment,
                              std::int64_t elements) {
  return most_elements_of(graph, target, element_classes(graph, target), segment, elements);
}

}  // namespace chainfold::codegen
