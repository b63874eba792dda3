// Classes of launches by their number of elements: scans of few have plans of their own.
#include <algorithm>

#include "chainfold/codegen/choose_scan.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of a run of tiles that wait for nobody (propagate, direct), and of such tiles a processor
/// has so many quarters of one at most. Measured on sm_90: a few small tiles take as long as one;
/// 16 MB are scanned sooner by small ones that fill the device, 32 MB by tiles that wait.
struct FewElements {
  int rows, quarters;
};
constexpr FewElements kFewElements[] = {{2, 1}, {4, 4}, {8, 16}};

constexpr int kCpuTileBytes = 256 * 1024;
constexpr int kCpuSmallTileBytes = 64 * 1024;

/// Elements of a class.
std::int64_t most_of(const FewElements& few, const Graph& graph, const Target& target) {
  const std::int64_t width = std::max(1, target.vector_bytes / widest_of_scan(graph));
  const std::int64_t tile = std::int64_t{Plan::kWarp} * width * few.rows * kTileWarps;
  return few.quarters * target.processors * tile / 4;
}

}  // namespace

int rows_of_few(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (target.max_warps == 1) return 0;
  for (const FewElements& few : kFewElements)
    if (request.most_elements == most_of(few, graph, target)) return few.rows;
  return 0;
}

int cpu_tile_bytes(const PlanRequest& request) {
  return request.most_elements > 0 ? kCpuSmallTileBytes : kCpuTileBytes;
}

std::vector<std::int64_t> element_classes(const Graph& graph, const Target& target) {
  if (!has_scans(graph)) return {};
  if (target.max_warps == 1) {
    // Small tiles, so that every thread has some; scans of both directions have no ranges.
    if (target.processors == 1 || scans_both_ways(graph)) return {};
    return {std::int64_t{4} * target.processors * kCpuTileBytes / widest_of_scan(graph)};
  }
  std::vector<std::int64_t> classes;
  for (const FewElements& few : kFewElements) classes.push_back(most_of(few, graph, target));
  const std::int64_t most = most_of_small_tiles(graph, target);
  if (most > classes.back()) classes.push_back(most);
  return classes;
}

std::int64_t most_elements_of(const std::vector<std::int64_t>& classes, std::int64_t segment,
                              std::int64_t elements) {
  if (segment != 0) return 0;
  const auto found = std::lower_bound(classes.begin(), classes.end(), elements);
  return found == classes.end() ? 0 : *found;
}

std::int64_t most_elements_of(const Graph& graph, const Target& target, std::int64_t segment,
                              std::int64_t elements) {
  return most_elements_of(element_classes(graph, target), segment, elements);
}

}  // namespace chainfold::codegen
