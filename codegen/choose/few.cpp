// Size classes: launches of few elements have plans of their own.
#include "chainfold/codegen/choose/few.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/streams.hpp"

namespace chainfold::codegen {

namespace {

/// Bytes of an element of all inputs; at least 1.
std::int64_t bytes_of_all(const Graph& graph) {
  return std::max<std::int64_t>(1, element_bytes(graph));
}

/// Elements of so many bytes, of a GPU's folds of the whole input or of segments; else 0.
std::int64_t most_of_bytes(std::int64_t bytes, const Graph& graph, const Target& target) {
  if (target.is_cpu() || has_scans(graph) || has_columns(graph)) return 0;
  return bytes / bytes_of_all(graph);
}

/// Few long segments of one fold: the blocks that share one, and the limit of their elements.
struct FewLong {
  int blocks;
  std::int64_t most;
};

/// The limit of elements of segments that `share` is for; up to `most` elements are few.
std::int64_t of_share(const LongShare& share, const Target& target, std::int64_t segment,
                      std::int64_t most) {
  const std::int64_t segments =
      share.blocks > 1 ? target.processors / share.blocks
                       : tuned_for(target).size_classes.long_segments * target.processors;
  return std::min(most / segment, segments) * segment;
}

/// Nothing where segments are not so long, or not so few, or parts' as ever, since the target has
/// no clusters to share them.
std::optional<FewLong> few_long(const Graph& graph, const Target& target, std::int64_t segment,
                                std::int64_t elements) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  const std::int64_t most = most_of_bytes(tuned.few_segment_bytes, graph, target);
  const std::int64_t bytes = segment <= most ? segment * bytes_of_all(graph) : 0;
  if (bytes < tuned.long_segment_bytes || bytes > tuned.longest_segment_bytes) return {};
  for (const LongShare& share : tuned.long_shares) {
    if (bytes <= share.bytes) continue;
    const std::int64_t limit = of_share(share, target, segment, most);
    if (elements > limit) continue;
    // Last: it looks at all nodes, and this is asked at each launch.
    if (share.blocks > target.cluster_blocks || !is_one_fold(graph)) return {};
    return FewLong{share.blocks, limit};
  }
  return {};
}

/// Whether a CPU's threads scan so many long segments one each.
bool are_many(std::int64_t segments, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  const std::int64_t threads = target.processors, each = (segments + threads - 1) / threads;
  const bool many = threads <= tuned.few_threads || each >= tuned.cpu_many_segments;
  return many && each * threads - segments <= segments / tuned.idle_share;
}

/// Long segments, up to which a CPU's threads share some numbers of them. More are many.
std::int64_t most_shared_segments(const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  return std::max(tuned.cpu_many_segments, tuned.idle_share) * target.processors;
}

}  // namespace

std::int64_t one_thread_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  // Not 0, which is no class.
  const std::int64_t alone =
      std::max<std::int64_t>(1, tuned.cpu_alone_elements * kRowMerges / additions_of(graph));
  return alone * 10 * target.processors / (10 * target.processors - 16);
}

std::span<const FewTiles> few_tiles(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  if (widest_of_scan(graph) != 8) return tuned.few_tiles;
  // What is computed of several rows at once leaves no registers for so many.
  const std::span<const FewTiles> all = tuned.few_wide_tiles;
  return is_one_fold(graph) ? all : all.first(all.size() - 1);
}

std::int64_t limit_of(const FewTiles& few, const Graph& graph, const Target& target) {
  const std::int64_t width = std::max(1, target.vector_bytes / widest_of_scan(graph));
  const std::int64_t tile = std::int64_t{kWarpWidth} * width * few.shape.rows * few.shape.warps;
  return few.tiles * target.processors * tile;
}

std::int64_t few_segments_limit(const Graph& graph, const Target& target, std::int64_t segment,
                                std::int64_t elements) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  if (const auto is_long = few_long(graph, target, segment, elements)) return is_long->most;
  const std::int64_t most = most_of_bytes(tuned.few_segment_bytes, graph, target);
  if (elements > most || !gains_from_stages(graph, target, {.segment = segment})) return 0;
  const PlanRequest few{.segment = segment, .size_limit = most};
  return gains_from_stages(graph, target, few) ? 0 : most;
}

std::int64_t shared_segments_limit(const Graph& graph, const Target& target, std::int64_t segment,
                                   std::int64_t elements) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  // What waits for all of its segment is read twice either way.
  if (segment <= tuned.cpu_longest_run || values_wait(graph)) return 0;
  if (are_many(elements / segment, target)) return 0;
  const std::int64_t shared = most_shared_segments(target);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t most = segment > kMost / shared ? kMost : shared * segment;
  const std::int64_t kept = cached_output_limit(graph, target);
  return elements <= kept ? std::min(kept, most) : most;
}

std::int64_t few_rows_limit(const Graph& graph, const Target& target, std::int64_t columns,
                            std::int64_t elements) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  if (elements == 0 || columns < tuned.many_columns_bytes * target.processors / widest_input(graph))
    return 0;
  for (const FewRows& few : tuned.few_rows)
    if ((elements - 1) / columns < few.rows) return few.rows * columns;
  return 0;
}

std::vector<std::int64_t> segment_bounds(const Graph& graph, const Target& target,
                                         std::int64_t segment, std::int64_t most) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  std::vector<std::int64_t> bounds;
  if (segment < 1) return bounds;
  if (has_columns(graph)) {
    for (const FewRows& few : tuned.few_rows)
      if (segment <= most / few.rows) bounds.push_back(few.rows * segment);
    return bounds;
  }
  if (target.is_cpu()) {
    const std::int64_t shared = most_shared_segments(target);
    for (std::int64_t count = 1; count <= std::min(shared, most / segment); ++count)
      bounds.push_back(count * segment - 1);
    bounds.push_back(cached_output_limit(graph, target));
    return bounds;
  }
  const std::int64_t few = most_of_bytes(tuned.few_segment_bytes, graph, target);
  for (const LongShare& share : tuned.long_shares)
    bounds.push_back(of_share(share, target, segment, few));
  bounds.push_back(few);
  return bounds;
}

int most_warps_of_few_rows(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (target.is_cpu() || !has_columns(graph) || request.segment < 1) return 0;
  for (const FewRows& few : tuned_for(target).size_classes.few_rows)
    if (!request.is_unlimited() && (request.size_limit - 1) / request.segment < few.rows)
      return few.warps;
  return 0;
}

int blocks_of_few_long(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (request.segment < 1 || request.size_limit < 1) return 0;
  const auto is_long = few_long(graph, target, request.segment, request.size_limit);
  return is_long ? is_long->blocks : 0;
}

std::optional<FewShape> shape_of_few(const Graph& graph, const Target& target,
                                     const PlanRequest& request) {
  if (target.is_cpu()) return std::nullopt;
  for (const FewTiles& few : few_tiles(graph, target))
    if (request.size_limit == limit_of(few, graph, target)) return few.shape;
  return std::nullopt;
}

std::int64_t cluster_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  if (target.cluster_blocks < 2 || has_scans(graph) || has_columns(graph)) return 0;
  return tuned.cluster_share_bytes * target.cluster_blocks / bytes_of_all(graph);
}

std::int64_t small_block_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  return most_of_bytes(tuned.small_blocks_bytes, graph, target);
}

std::int64_t few_parts_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  // Of long states parts are few anyway.
  return has_long_states(graph, target) ? 0 : most_of_bytes(tuned.few_parts_bytes, graph, target);
}

std::int64_t few_columns_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  return target.is_cpu() && has_columns(graph) ? tuned.few_columns_bytes / bytes_of_all(graph) : 0;
}

std::int64_t cached_fold_limit(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  const bool asks = many_ask_ahead(target) && !has_scans(graph) && !graph.inputs.empty();
  return asks ? tuned.near_bytes / bytes_of_all(graph) : 0;
}

bool has_long_states(const Graph& graph, const Target& target) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  const bool one_sum = graph.folds.size() == 1 && graph.folds.front().linear;
  return carried_bytes(graph) > (one_sum ? tuned.small_sum : tuned.small_state);
}

std::int64_t cached_output_limit(const Graph& graph, const Target& target) {
  const int along = lines_along(graph);
  if (along < 0 || target.non_temporal_bytes == 0) return 0;
  const NodeId output = graph.outputs[static_cast<std::size_t>(along) - graph.inputs.size()];
  return target.non_temporal_bytes / size_of(graph.node(output).type) - 1;
}

std::int64_t small_cpu_tile_limit(const Graph& graph, const Target& target) {
  const std::int64_t tiles = std::int64_t{4} * target.processors;
  const std::int64_t most = tiles * target.tile_bytes / widest_of_scan(graph);
  const std::int64_t kept = cached_output_limit(graph, target);
  return kept > 0 ? std::min(most, kept) : most;
}

int cpu_tile_bytes(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedSizeClasses& tuned = tuned_for(target).size_classes;
  const std::int64_t most = request.size_limit;
  const bool few = most > 0 && most <= small_cpu_tile_limit(graph, target);
  return few ? tuned.cpu_small_tile_bytes : target.tile_bytes;
}

bool owned_by_one_thread(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (!target.is_cpu()) return false;
  return target.processors == 1 || request.size_limit == one_thread_limit(graph, target);
}

}  // namespace chainfold::codegen
