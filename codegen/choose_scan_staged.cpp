// Plans of look_back whose tiles come through shared memory.
//
// A tile lives for a while: its elements come, are folded, and wait for what comes before them. All
// that a processor has on its way lies meanwhile in registers or in shared memory, which together
// hold about twice what registers do. What is staged is read twice from there; registers hold only
// the rows besides.
#include <algorithm>

#include "chainfold/codegen/plan_scan.hpp"

namespace chainfold::codegen {

namespace {

/// Rows of a run that stay in registers, and that a round of the scan takes from shared memory.
constexpr int kKeptRows = 4, kRound = 4;
/// Over everything, of whole loads: three blocks hold more than four, for whose rows registers are
/// few (measured on sm_90: f32 .904 of the copy ceiling instead of .885, f64 .890 and .861).
constexpr int kLongRunRows = 8, kLongRunBlocks = 3;
/// Staged rows of a run at most: their fold is unrolled, and merges of many fields are long.
constexpr int kMostStaged = 28, kMostStagedOfMany = 16;
/// Warps of a processor where what is made of rows leaves registers for rows to stay.
constexpr int kManyWarps = 32;
/// A block's warps: fewer are more blocks, of which some compute while others wait.
constexpr int kBlockWarps = 8;
/// Shared memory of a block besides its rows.
constexpr int kBesides = 2 * 1024;

}  // namespace

std::optional<PlanChoice> staged_scan_choice(const Graph& graph, const Target& target,
                                             const PlanRequest& request, bool mma, bool heads) {
  if (!target.bulk_copies || graph.inputs.empty()) return std::nullopt;
  auto choice = scan_choice_of(Strategy::look_back, graph, target, request, mma);
  if (!choice) return std::nullopt;
  int bytes = 0;
  for (const GraphInput& input : graph.inputs) bytes += size_of(input.type);
  const int element = mma ? widest_input(graph) : widest_of_scan(graph);
  const int width = std::max(1, target.vector_bytes / element);
  // Where loads are narrow, rows are short and their merges outweigh the wait.
  if (std::min(target.vector_bytes, request.base_alignment) < width * element) return std::nullopt;
  if (!heads && request.segment % width != 0) return std::nullopt;
  choice->heads = heads ? 1 : 0;
  choice->warps = kBlockWarps;
  const int warps = scan_warps(graph, target, kRound, width);
  choice->blocks = warps / kBlockWarps;
  if (choice->blocks < 1) return std::nullopt;
  const bool keeps = graph.folds.size() == 1 && warps >= kManyWarps;
  const std::int64_t row = std::int64_t{Plan::kWarp} * width * bytes;
  const bool long_runs =
      keeps && request.segment == 0 && row >= std::int64_t{Plan::kWarp} * target.vector_bytes;
  if (long_runs) choice->blocks = std::min(choice->blocks, kLongRunBlocks);
  const int most_kept = keeps ? (long_runs ? kLongRunRows : kKeptRows) : 0;
  const std::int64_t of_block =
      target.processor_shared_bytes / choice->blocks - kReservedShared - kBesides;
  const std::int64_t of_warp = std::min<std::int64_t>(of_block, target.shared_bytes) / kBlockWarps;
  const std::int64_t most = keeps ? kMostStaged : kMostStagedOfMany;
  choice->staged = static_cast<int>(std::min(most, of_warp / row) / kRound * kRound);
  if (choice->staged == 0) return std::nullopt;
  choice->depth = choice->staged + most_kept;
  const std::int64_t s = request.segment;
  if (s == 0 || heads) return choice;
  // As many rows as share a segment evenly among its tiles.
  const std::int64_t rows_of = Plan::kWarp * width * choice->warps;
  const std::int64_t tiles = (s - 1) / (rows_of * choice->depth) + 1;
  if (tiles == 1) return std::nullopt;
  const auto needed = static_cast<int>((s - 1) / (rows_of * tiles) + 1);
  const int kept = keeps ? (needed - 1) % most_kept + 1 : 0;
  choice->staged = std::min(choice->staged, (needed - kept + kRound - 1) / kRound * kRound);
  if (choice->staged == 0) return std::nullopt;
  choice->depth = choice->staged + kept;
  return choice;
}

}  // namespace chainfold::codegen
