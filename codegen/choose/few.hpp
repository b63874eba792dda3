// Launches of few elements: where they have plans of their own, and which.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Warps of a tile of a class of few elements, whose tiles wait for nobody, and rows of a warp's
/// run; nothing where the request's class is none of these.
struct FewShape {
  int warps = 1, rows = 1;
};
std::optional<FewShape> shape_of_few(const Graph& graph, const Target& target,
                                     const PlanRequest& request);
/// Bytes of a CPU's tile: what is read twice has to stay in a core's cache, beside what is read
/// ahead. Of few elements they are smaller, so that every thread has some.
int cpu_tile_bytes(const Graph& graph, const Target& target, const PlanRequest& request);
/// Longer segments than this give a CPU's threads too few tasks, unless there are many of them.
inline constexpr std::int64_t kCpuLongestRun = std::int64_t{1} << 18;
/// Elements of outputs that do not pass a CPU's caches by; 0: no number is too large.
std::int64_t most_of_kept_outputs(const Graph& graph, const Target& target);
/// Whether all elements of such a request are scanned sooner by one thread of a CPU, which reads
/// them once, than by all of them.
bool owned_by_one_thread(const Graph& graph, const Target& target, const PlanRequest& request);
/// Elements of everything up to which one cluster folds it sooner than two launches do; 0: never.
std::int64_t most_of_cluster(const Graph& graph, const Target& target);
/// Elements of everything up to which blocks of half the warps do; 0: on a CPU.
std::int64_t most_of_small_blocks(const Graph& graph, const Target& target);
/// Elements of everything up to which few parts fold it sooner than many do; 0: they always do, or
/// on a CPU.
std::int64_t most_of_few_parts(const Graph& graph, const Target& target);
/// Elements of columns up to which a CPU's blocks stay at theirs; 0: on a GPU.
std::int64_t most_of_few_columns(const Graph& graph, const Target& target);
/// Elements of folds that are in a CPU's caches, so that its threads need not read ahead; 0: they
/// never do.
std::int64_t most_of_near(const Graph& graph, const Target& target);
/// Warps of a GPU's block for so few rows of many columns as the request is for; 0: not so few.
int most_warps_of_few_rows(const Graph& graph, const Target& target, const PlanRequest& request);
/// Blocks that share each of so few long segments of one fold as the request is for, on a GPU: one,
/// or a cluster's; 0: they are not so few, or not so long, or would be a cluster's that the target
/// has not.
int blocks_of_few_long(const Graph& graph, const Target& target, const PlanRequest& request);
/// Whether the states of a part are so long that many of them take long to merge.
bool has_long_states(const Graph& graph);
/// Tiles that wait for nobody (propagate, direct), of which a processor has so many at most.
/// Measured on sm_90: blocks of four warps start sooner than those of eight, and up to two of them
/// take as long as one; 16 MB are scanned sooner by small tiles that fill the device, 32 MB by
/// tiles that wait.
struct FewTiles {
  FewShape shape;
  int tiles;
};
/// Elements that one thread has scanned by the time at which P threads would have: those read all
/// of them twice, 1.7 times what once takes since the first reading is the faster one, and wake up
/// first, so that n = alone + 1.7 n / P.
std::int64_t most_of_one_thread(const Graph& graph, const Target& target);
/// Those that a graph has, the smallest first.
std::span<const FewTiles> few_tiles(const Graph& graph);
/// Elements of such tiles on all processors.
std::int64_t most_of(const FewTiles& few, const Graph& graph, const Target& target);
/// The most elements of few segments, if so many are few and have rules of their own.
std::int64_t most_of_few_segments(const Graph& graph, const Target& target, std::int64_t segment,
                                  std::int64_t elements);
/// The same of long segments that a CPU's threads share, or, of those, where outputs stay in the
/// caches.
std::int64_t most_of_shared_segments(const Graph& graph, const Target& target, std::int64_t segment,
                                     std::int64_t elements);
/// The same of few rows of many columns.
std::int64_t most_of_few_rows(const Graph& graph, const Target& target, std::int64_t columns,
                              std::int64_t elements);
/// Elements of everything that make four large tiles a thread: of no more they are small, so that
/// every thread has some.
std::int64_t most_of_small_cpu_tiles(const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
