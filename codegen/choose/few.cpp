// Classes of launches by their number of elements: few have plans of their own.
#include "chainfold/codegen/choose/few.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "chainfold/codegen/choose/staged.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/vector_cost.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/scan.hpp"
#include "chainfold/codegen/plan/strands.hpp"

namespace chainfold::codegen {

namespace {

constexpr FewTiles kFewTiles[] = {{{.warps = 4, .rows = kSmallTileRows}, 2},
                                  {{.warps = 8, .rows = 8}, 4}};

/// The same of elements of 8 bytes, whose rows are short, as long as a processor has its tiles all
/// at once (us, 2^18, 2^19, 10^6, 1.5 * 10^6 and 1.7 * 10^6 f64 by tiles of four warps with eight
/// rows 7.9, 9.6 and 14.2, the first three, of eight warps with eight 8.3, 9.3, 13.1, 16.5, 19.0,
/// with twelve 8.6, 9.8, 13.9, 14.7, 18.9; by tiles that wait 13.9, 15.3 and 16.7 the last three).
/// Of four warps with sixteen rows since a block's states are merged in fewer steps: 1.9, 2.1 and
/// 2.15 * 10^6 16.3, 17.2 and 17.5, by tiles that wait 17.2, 17.7 and 17.9, 1.6 * 10^6 15.9 (with
/// twelve 14.9), 3 * 10^6 23.9 (22.3).
constexpr FewTiles kFewWideTiles[] = {{{.warps = 4, .rows = 8}, 1},
                                      {{.warps = 8, .rows = 8}, 2},
                                      {{.warps = 8, .rows = 12}, 2},
                                      {{.warps = 4, .rows = 16}, 4}};

/// Bytes that a cluster's blocks read each, at most: more take longer than a second launch.
constexpr std::int64_t kClusterShareBytes = 32 * 1024;

/// Bytes up to which parts of everything are few: what the second launch does for more of them
/// outweighs that they end together.
constexpr std::int64_t kFewPartsBytes = 512 * 1024 * 1024;

/// Bytes up to which a block's warps are half as many, so that twice as many blocks share them.
constexpr std::int64_t kSmallBlocksBytes = 4 * 1024 * 1024;

/// Bytes of the longest states of which there may be many: longer ones take long to merge, but for
/// a sum's, which additions merge (f64 on an H200, of the ceiling, by 264 parts and by 4096:
/// of everything 0.992 and 0.998, of 2^21 0.990 and 0.997; another H200 took 2 % more time for what
/// was in 264 parts, and as much for what was in 4096).
constexpr std::int64_t kSmallState = 8, kSmallSum = 16;

/// Bytes up to which segments that wide loads read are folded by rows though more of them are
/// staged: what copies, their barriers and the way of results through shared memory take before the
/// first result is stored is 0.4 to 1.3 us (measured on an H200: 64 f16 a segment, of 2^20 elements
/// 4.2 us by rows, 4.8 staged, of 2^22 5.8 and 6.5, of 2^26 35.1 and 36.0; 200 of 2^22 5.9
/// and 7.2).
constexpr std::int64_t kFewSegmentBytes = 128 * 1024 * 1024;

/// Segments of so many bytes, up to so many for each processor, have a block each, or few: a warp
/// would have one for too long. Measured on an H200, times of blocks of 16 warps (below
/// kWideSegmentBytes of 8 warps) over those of rows or as many parts as can be: 64 and 256 f16 of
/// 32 KiB 0.60 and 0.74 (rows of more loads 0.76 and 0.81), 170 f32 of 48 KiB 0.80, 32 and 128 of
/// 64 KiB 0.96 and 0.97, 85 of 96 KiB 0.82, 128 and 256 of 256 KiB 0.87 and 0.91, of 512 KiB 0.91
/// and 0.95, 128 of 1 MiB 0.95.
constexpr std::int64_t kLongSegmentBytes = 32 * 1024, kLongestSegmentBytes = 1024 * 1024;

constexpr std::int64_t kLongSegments = 2;
/// Blocks that share a segment longer than so many bytes while they all have a processor of their
/// own; all of kLongSegments a processor have one each. Measured on an H200, us by a block each, by
/// clusters and by as many small parts, which a second launch merges: one f32 segment of 160
/// KiB 5.8, 5.2, 5.7, of 256 KiB 6.2, 5.3, 5.7, of 512 KiB 8.6, 6.0, 5.7, of 1 MiB 13.0, 7.1, 5.8;
/// 16 of them 6.0, 6.1, 6.3 and 6.7, 6.5, 6.7 and 9.3, 7.7, 7.8 and 14.0, 9.5, 9.9; 33, which four
/// share, of 512 KiB 10.2, 9.3, 9.7, of 1 MiB 15.8, 13.2, 13.4; 64 of them 12.2 and 19.6, by
/// parts 13.3 and 20.6. Where parts are sooner, their second launch costs the host what they save.
struct Share {
  int blocks;
  std::int64_t bytes;
};

constexpr Share kShares[] = {{8, 128 * 1024}, {4, 256 * 1024}, {1, 0}};
/// Bytes of a matrix that CPUs' caches hold so near that it does not matter where in a row a load
/// lies: 512 bytes of each row are then read as fast as all of it, and states stay in registers.
/// Measured on a Zen 4 (cache of 1 MiB a core): 1 MiB at 1.0 of the rate of plain reading, along
/// rows 0.8; 4 MiB 0.8 and 0.7; 16 MiB 0.57 and 0.88.
constexpr std::int64_t kFewColumnsBytes = 4 * 1024 * 1024;

/// Bytes that CPUs which read ahead have near, as far as that pays. 16 threads of a Sapphire Rapids
/// by 8 KiB ahead, of the speed without: 4 to 16 MB 0.8 to 1, 32 to 128 MB 0.95 to 1.05, 256 MB
/// 1.1 to 1.3.
constexpr std::int64_t kNearBytes = 128 * 1024 * 1024;

/// Of so few rows a warp's batches are so many that more warps would have none, and many blocks are
/// there for a short time. Measured on an H200, 2^24 elements, of the ceiling by 1, 2, 4 and 8
/// warps: 2^20 columns of f32 0.77, 0.78, 0.77, 0.51, 2^21 of f16 0.67, 0.54, 0.40, 0.20; 2^26
/// elements: 2^20 of f32 0.89 by any, 2^21 of f16 0.83, 0.84, 0.84, 0.59.
struct FewRows {
  std::int64_t rows;
  int warps;
};

constexpr FewRows kFewRows[] = {{8, 1}, {32, 2}};
/// Bytes of a row, for each processor, from which on it has many columns.
constexpr std::int64_t kManyColumnsBytes = 4 * 1024;

constexpr int kCpuSmallTileBytes = 64 * 1024;
/// A CPU's threads scan long segments one each, reading each once, if all have so many, or if the
/// threads are few, and if those that have none left wait for an eighth of the time at most.
/// Measured in turn, time by segments each over that of threads that share them: 16 threads of a
/// Sapphire Rapids, f16, 128, 64, 32 and 8 segments 0.93, 0.95, 1.04 and 1.5, f32, 64 and 32
/// segments 1.01 and 1.12; two threads of one, 2 to 256 segments f16 0.79 to 0.89, bf16 0.84 to
/// 0.92, f32 0.82 to 0.86.
constexpr std::int64_t kCpuManySegments = 4, kFewThreads = 4, kIdleShare = 8;

/// Elements whose running sums a CPU's thread computes while others wake up.
constexpr std::int64_t kCpuAloneElements = 200 * 1024;

/// Bytes of an element of all inputs; at least 1.
std::int64_t bytes_of_all(const Graph& graph) {
  return std::max<std::int64_t>(1, element_bytes(graph));
}

/// Elements of so many bytes, of a GPU's folds of everything or of segments; else 0.
std::int64_t most_of_bytes(std::int64_t bytes, const Graph& graph, const Target& target) {
  if (target.max_warps == 1 || has_scans(graph) || has_columns(graph)) return 0;
  return bytes / bytes_of_all(graph);
}

/// Few long segments of one fold: the blocks that share one, and the most elements of so many.
struct FewLong {
  int blocks;
  std::int64_t most;
};

/// None: they are not so long, or not so few, or parts' as ever, since the target has no clusters
/// to share them.
std::optional<FewLong> few_long(const Graph& graph, const Target& target, std::int64_t segment,
                                std::int64_t elements) {
  const std::int64_t most = most_of_bytes(kFewSegmentBytes, graph, target);
  const std::int64_t bytes = segment <= most ? segment * bytes_of_all(graph) : 0;
  if (bytes < kLongSegmentBytes || bytes > kLongestSegmentBytes) return {};
  for (const Share& share : kShares) {
    if (bytes <= share.bytes) continue;
    const std::int64_t segments =
        share.blocks > 1 ? target.processors / share.blocks : kLongSegments * target.processors;
    const std::int64_t of_share = std::min(most / segment, segments) * segment;
    if (elements > of_share) continue;
    // Last: it looks at all nodes, and this is asked at each launch.
    if (share.blocks > target.cluster_blocks || !is_one_fold(graph)) return {};
    return FewLong{share.blocks, of_share};
  }
  return {};
}

/// Whether a CPU's threads scan so many long segments one each.
bool are_many(std::int64_t segments, const Target& target) {
  const std::int64_t threads = target.processors, each = (segments + threads - 1) / threads;
  const bool many = threads <= kFewThreads || each >= kCpuManySegments;
  return many && each * threads - segments <= segments / kIdleShare;
}

}  // namespace

std::int64_t most_of_one_thread(const Graph& graph, const Target& target) {
  // Not 0, which is no class.
  const std::int64_t alone =
      std::max<std::int64_t>(1, kCpuAloneElements * kRowMerges / additions_of(graph));
  return alone * 10 * target.processors / (10 * target.processors - 16);
}

std::span<const FewTiles> few_tiles(const Graph& graph) {
  if (widest_of_scan(graph) != 8) return kFewTiles;
  // What is computed of several rows at once leaves no registers for so many.
  const std::span<const FewTiles> all = kFewWideTiles;
  return is_one_fold(graph) ? all : all.first(all.size() - 1);
}

std::int64_t most_of(const FewTiles& few, const Graph& graph, const Target& target) {
  const std::int64_t width = std::max(1, target.vector_bytes / widest_of_scan(graph));
  const std::int64_t tile = std::int64_t{kWarpWidth} * width * few.shape.rows * few.shape.warps;
  return few.tiles * target.processors * tile;
}

std::int64_t most_of_few_segments(const Graph& graph, const Target& target, std::int64_t segment,
                                  std::int64_t elements) {
  if (const auto is_long = few_long(graph, target, segment, elements)) return is_long->most;
  const std::int64_t most = most_of_bytes(kFewSegmentBytes, graph, target);
  if (elements > most || !gains_from_stages(graph, target, {.segment = segment})) return 0;
  const PlanRequest few{.segment = segment, .most_elements = most};
  return gains_from_stages(graph, target, few) ? 0 : most;
}

std::int64_t most_of_shared_segments(const Graph& graph, const Target& target, std::int64_t segment,
                                     std::int64_t elements) {
  // What waits for all of its segment is read twice either way.
  if (segment <= kCpuLongestRun || values_wait(graph)) return 0;
  if (are_many(elements / segment, target)) return 0;
  // More are many.
  const std::int64_t shared = std::max(kCpuManySegments, kIdleShare) * target.processors;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t most = segment > kMost / shared ? kMost : shared * segment;
  const std::int64_t kept = most_of_kept_outputs(graph, target);
  return elements <= kept ? std::min(kept, most) : most;
}

std::int64_t most_of_few_rows(const Graph& graph, const Target& target, std::int64_t columns,
                              std::int64_t elements) {
  if (elements == 0 || columns < kManyColumnsBytes * target.processors / widest_input(graph))
    return 0;
  for (const FewRows& few : kFewRows)
    if ((elements - 1) / columns < few.rows) return few.rows * columns;
  return 0;
}

int most_warps_of_few_rows(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (target.max_warps == 1 || !has_columns(graph) || request.segment < 1) return 0;
  for (const FewRows& few : kFewRows)
    if (request.most_elements > 0 && (request.most_elements - 1) / request.segment < few.rows)
      return few.warps;
  return 0;
}

int blocks_of_few_long(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (request.segment < 1 || request.most_elements < 1) return 0;
  const auto is_long = few_long(graph, target, request.segment, request.most_elements);
  return is_long ? is_long->blocks : 0;
}

std::optional<FewShape> shape_of_few(const Graph& graph, const Target& target,
                                     const PlanRequest& request) {
  if (target.max_warps == 1) return std::nullopt;
  for (const FewTiles& few : few_tiles(graph))
    if (request.most_elements == most_of(few, graph, target)) return few.shape;
  return std::nullopt;
}

std::int64_t most_of_cluster(const Graph& graph, const Target& target) {
  if (target.cluster_blocks < 2 || has_scans(graph) || has_columns(graph)) return 0;
  return kClusterShareBytes * target.cluster_blocks / bytes_of_all(graph);
}

std::int64_t most_of_small_blocks(const Graph& graph, const Target& target) {
  return most_of_bytes(kSmallBlocksBytes, graph, target);
}

std::int64_t most_of_few_parts(const Graph& graph, const Target& target) {
  // Of long states parts are few anyway.
  return has_long_states(graph) ? 0 : most_of_bytes(kFewPartsBytes, graph, target);
}

std::int64_t most_of_few_columns(const Graph& graph, const Target& target) {
  return target.max_warps == 1 && has_columns(graph) ? kFewColumnsBytes / bytes_of_all(graph) : 0;
}

std::int64_t most_of_near(const Graph& graph, const Target& target) {
  const bool asks = many_ask_ahead(target) && !has_scans(graph) && !graph.inputs.empty();
  return asks ? kNearBytes / bytes_of_all(graph) : 0;
}

bool has_long_states(const Graph& graph) {
  const bool one_sum = graph.folds.size() == 1 && graph.folds.front().linear;
  return carried_bytes(graph) > (one_sum ? kSmallSum : kSmallState);
}

std::int64_t most_of_kept_outputs(const Graph& graph, const Target& target) {
  const int along = lines_along(graph);
  if (along < 0 || target.stream_bytes == 0) return 0;
  const NodeId output = graph.outputs[static_cast<std::size_t>(along) - graph.inputs.size()];
  return target.stream_bytes / size_of(graph.node(output).type) - 1;
}

std::int64_t most_of_small_cpu_tiles(const Graph& graph, const Target& target) {
  const std::int64_t tiles = std::int64_t{4} * target.processors;
  const std::int64_t most = tiles * target.tile_bytes / widest_of_scan(graph);
  const std::int64_t kept = most_of_kept_outputs(graph, target);
  return kept > 0 ? std::min(most, kept) : most;
}

int cpu_tile_bytes(const Graph& graph, const Target& target, const PlanRequest& request) {
  const std::int64_t most = request.most_elements;
  const bool few = most > 0 && most <= most_of_small_cpu_tiles(graph, target);
  return few ? kCpuSmallTileBytes : target.tile_bytes;
}

bool owned_by_one_thread(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (target.max_warps > 1) return false;
  return target.processors == 1 || request.most_elements == most_of_one_thread(graph, target);
}

}  // namespace chainfold::codegen
