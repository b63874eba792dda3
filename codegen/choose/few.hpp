// Launches of few elements: the limits of their size classes, and which plans these have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chainfold/codegen/choose/tuned/size_classes.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The tiles of a size class of few elements; nothing where the request's class is none of these.
std::optional<FewShape> shape_of_few(const Graph& graph, const Target& target,
                                     const PlanRequest& request);
/// Bytes of a CPU's tile: what is read twice has to stay in a core's cache, beside what is read
/// ahead. Where elements are few, tiles are smaller, so that every thread has some.
int cpu_tile_bytes(const Graph& graph, const Target& target, const PlanRequest& request);
/// Elements up to which outputs stay in a CPU's caches, without non-temporal stores; 0: any number
/// does.
std::int64_t cached_output_limit(const Graph& graph, const Target& target);
/// Whether all elements of such a request are scanned sooner by one thread of a CPU, which reads
/// them once, than by all threads.
bool owned_by_one_thread(const Graph& graph, const Target& target, const PlanRequest& request);
/// Elements of the whole input up to which one cluster folds it sooner than two launches do; 0:
/// never.
std::int64_t cluster_limit(const Graph& graph, const Target& target);
/// Elements of the whole input up to which blocks of half the warps do; 0: on a CPU.
std::int64_t small_block_limit(const Graph& graph, const Target& target);
/// Elements of the whole input up to which few parts fold it sooner than many do; 0: they always
/// do, or on a CPU.
std::int64_t few_parts_limit(const Graph& graph, const Target& target);
/// Elements of columns up to which a CPU's blocks stay at theirs; 0: on a GPU.
std::int64_t few_columns_limit(const Graph& graph, const Target& target);
/// Elements of folds that are in a CPU's caches, so that its threads need not read ahead; 0: they
/// never do.
std::int64_t cached_fold_limit(const Graph& graph, const Target& target);
/// Warps of a GPU's block for so few rows of many columns as the request is for; 0: not so few.
int most_warps_of_few_rows(const Graph& graph, const Target& target, const PlanRequest& request);
/// Blocks that share each of so few long segments of one fold as the request is for, on a GPU: one,
/// or a cluster's. None (0) do where segments are not so few, or not so long, or would be a
/// cluster's that the target has not.
int blocks_of_few_long(const Graph& graph, const Target& target, const PlanRequest& request);
/// Whether the states of a part are so long that many of them take long to merge.
bool has_long_states(const Graph& graph, const Target& target);
/// Elements n that one thread has scanned by the time at which P threads would have
/// (docs/tuned-values.md#scans-on-a-cpu). Those read all of them twice, in 1.6 times the time of
/// one reading, since the first one is the faster. They wake up first, so that n = alone + 1.6 n /
/// P.
std::int64_t one_thread_limit(const Graph& graph, const Target& target);
/// The tiles of few elements that a graph has, the smallest first.
std::span<const FewTiles> few_tiles(const Graph& graph, const Target& target);
/// The limit of elements of such tiles on all multiprocessors.
std::int64_t limit_of(const FewTiles& few, const Graph& graph, const Target& target);
/// The limit of elements of few segments, if `elements` are few and have rules of their own; else
/// 0.
std::int64_t few_segments_limit(const Graph& graph, const Target& target, std::int64_t segment,
                                std::int64_t elements);
/// The same of long segments that a CPU's threads share, or, of those, where outputs stay in the
/// caches.
std::int64_t shared_segments_limit(const Graph& graph, const Target& target, std::int64_t segment,
                                   std::int64_t elements);
/// The same of few rows of many columns.
std::int64_t few_rows_limit(const Graph& graph, const Target& target, std::int64_t columns,
                            std::int64_t elements);
/// Numbers of elements, up to `most`, behind which launches of such segments or columns may be of
/// another size class. They are the limits of the three above, and of each number of long segments
/// that a CPU's threads may share.
std::vector<std::int64_t> segment_bounds(const Graph& graph, const Target& target,
                                         std::int64_t segment, std::int64_t most);
/// Elements of the whole input that make four large tiles a thread. Up to so many tiles are small,
/// so that every thread has some.
std::int64_t small_cpu_tile_limit(const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
