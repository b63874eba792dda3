// The staged strategy's decisions: which lanes share a segment follows from what shared memory can
// deliver, how much is under way from what memory needs.
#include "chainfold/codegen/choose/staged.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/staged.hpp"

namespace chainfold::codegen {

namespace {

constexpr int kBanks = 32;
int sum_of_outputs(const Graph& graph) {
  int bytes = 0;
  for (const NodeId output : graph.outputs) bytes += size_of(graph.node(output).type);
  return bytes;
}

/// Cycles that shared memory takes for one load of `width` elements a lane. Lane l begins at (l /
/// lanes) * segment + (l % lanes) * width, or at the load's boundary before that. Each group of
/// lanes that is served together takes as many cycles as the busiest bank has words.
int bank_cycles(std::int64_t segment, int lanes, int width, int size) {
  const int bytes = width * size;
  const int together = std::min(kWarpWidth, kBanks * kBankBytes / std::max(bytes, kBankBytes));
  int cycles = 0;
  for (int first = 0; first < kWarpWidth; first += together) {
    std::array<std::vector<std::int64_t>, kBanks> words;
    for (int l = first; l < first + together; ++l) {
      const std::int64_t start = l / lanes * segment / width * width;
      const std::int64_t begin = (start + std::int64_t{l % lanes} * width) * size;
      for (std::int64_t word = begin / kBankBytes; word <= (begin + bytes - 1) / kBankBytes; ++word)
        words[static_cast<std::size_t>(word % kBanks)].push_back(word);
    }
    std::size_t busiest = 1;
    for (auto& bank : words) {
      std::sort(bank.begin(), bank.end());
      bank.erase(std::unique(bank.begin(), bank.end()), bank.end());
      busiest = std::max(busiest, bank.size());
    }
    cycles += static_cast<int>(busiest);
  }
  return cycles;
}

/// Cycles of a multiprocessor a segment: its loads from shared memory, and a quarter of a warp's
/// instructions. The warp adds up what the loads bring, and then its lanes.
double cost(const Graph& graph, std::int64_t segment, int lanes, int width) {
  const std::int64_t step = std::int64_t{lanes} * width;
  const auto loads = static_cast<double>((segment + step - 1) / step);
  double cycles = 0;
  for (const GraphInput& input : graph.inputs)
    cycles += loads * bank_cycles(segment, lanes, width, size_of(input.type));
  const auto inputs = static_cast<double>(graph.inputs.size());
  const double adds = loads * (inputs + 2.0 * width * inputs);
  const double exchanges = 4.0 * std::countr_zero(static_cast<unsigned>(lanes));
  return (cycles + (adds + exchanges) / 4) * lanes / kWarpWidth;
}

/// Steps of merging one more element into all folds' states.
std::int64_t merge_steps(const Graph& graph, const Target& target, bool batched = false) {
  const TunedStaged& tuned = tuned_for(target).staged;
  std::int64_t steps = 0;
  for (const Fold& fold : graph.folds) {
    const auto whole = static_cast<std::int64_t>(fold.merge.steps.size() + fold.lift.steps.size());
    const std::int64_t own = fold.place      ? tuned.steps_of_places
                             : fold.relative ? tuned.steps_of_terms
                                             : whole;
    steps += fold.tile ? 1 : fold.moments && batched ? tuned.steps_of_moments : own;
  }
  return std::max<std::int64_t>(steps, 1);
}

/// Whether it folds pairs of elements that shared memory serves one by one.
bool folds_pairs_of_words(const Graph& graph, std::int64_t segment) {
  return folds_pairs(graph, segment) && widest_input(graph) >= kBankBytes;
}

/// Blocks that fill their stages once, each tile with as many rows as leave room for enough blocks.
std::optional<PlanChoice> one_round(const Graph& graph, const Target& target,
                                    const PlanRequest& request, PlanChoice choice) {
  const TunedStaged& tuned = tuned_for(target).staged;
  choice.warps = tuned.warps_of_one_round;
  choice.stages = choice.store_batch = choice.tail_trips = 2;
  const std::int64_t merges = request.segment * merge_steps(graph, target);
  choice.rows = folds_pairs_of_words(graph, request.segment)
                    ? tuned.pair_bytes / (2 * widest_input(graph))
                    : tuned.rows_of_one_round;
  for (; choice.rows > 0; choice.rows /= 2) {
    if (choice.rows > 1 && choice.rows * merges > tuned.most_merges) continue;
    for (choice.occupancy = tuned.most_blocks_of_one_round;
         choice.occupancy >= tuned.least_blocks_of_one_round; --choice.occupancy) {
      if (make_plan(graph, target, request, choice)) return choice;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<PlanChoice> staged_choice(const Graph& graph, const Target& target,
                                        const PlanRequest& request) {
  const TunedStaged& tuned = tuned_for(target).staged;
  const std::int64_t s = request.segment;
  if (!target.async_copies || s < 1 || graph.inputs.empty()) return std::nullopt;
  const int bytes = element_bytes(graph);
  const int widest = widest_load(graph, target, request.base_alignment);
  PlanChoice choice;
  choice.strategy = Strategy::staged;
  choice.mma = target.has_mma && request.allow_mma;
  choice.bytes = target.vector_bytes;
  choice.warps = 8;
  choice.occupancy = 2;
  double least = std::numeric_limits<double>::max();
  for (int lanes = 1; lanes <= kWarpWidth; lanes *= 2) {
    const int width = staged_width(graph, s, widest, target.vector_bytes, lanes).first;
    const std::int64_t step = std::int64_t{lanes} * width;
    if (s * bytes * (kWarpWidth / lanes) > tuned.long_tile && lanes < kWarpWidth) continue;
    const bool batched = lanes == kWarpWidth && has_moments(graph);
    if (s > std::int64_t{batched ? kMostStagedLoads : tuned.usual_loads} * lanes) continue;
    if (lanes > 1 && step >= 2 * s) continue;
    if (s / lanes * merge_steps(graph, target, batched) > tuned.most_merges) continue;
    const double cycles = cost(graph, s, lanes, width);
    if (cycles >= least) continue;
    least = cycles;
    choice.lanes = lanes;
  }
  if (choice.lanes == 0) return std::nullopt;
  const std::int64_t out = sum_of_outputs(graph);
  if (choice.lanes == 1 && s * bytes <= tuned.one_round_share * out) {
    if (const std::optional<PlanChoice> once = one_round(graph, target, request, choice))
      return once;
  }
  const std::int64_t row = s * bytes * (kWarpWidth / choice.lanes);
  choice.rows = 1;
  // What bytes are widened to is known to be exact, and few steps suffice for it.
  const bool batched = has_moments(graph) && bytes == 1;
  const std::int64_t merges = s / choice.lanes * merge_steps(graph, target, batched);
  const bool words =
      bytes == 1 && staged_width(graph, s, widest, target.vector_bytes, choice.lanes).second;
  const std::int64_t short_tile = words                          ? tuned.short_tile_of_words
                                  : s * bytes < tuned.long_bytes ? tuned.short_tile
                                                                 : tuned.short_tile_of_long;
  // A byte of results for each segment: more of them are stored at once.
  const int most_rows = out == 1 ? tuned.rows_of_bytes : tuned.rows;
  while (row * choice.rows < short_tile && choice.rows < most_rows &&
         2 * choice.rows * merges <= tuned.most_merges)
    choice.rows *= 2;
  const std::int64_t tile = row * choice.rows;
  const std::int64_t warps = choice.warps;
  const std::int64_t round = warps * tile;
  const bool many = s * bytes < tuned.many_share * out;
  if (many) {
    choice.stages = 2;
    choice.occupancy = static_cast<int>(
        std::clamp<std::int64_t>(tuned.bytes_in_flight_of_batches / (round * choice.stages), 2, 4));
    choice.store_batch = choice.tail_trips = static_cast<int>(std::clamp<std::int64_t>(
        tuned.bytes_of_batch / round, 2 * choice.stages, tuned.most_batch));
  } else {
    if (4 * round > 2 * tuned.bytes_in_flight) choice.occupancy = 1;
    choice.stages = static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(tuned.bytes_in_flight / (choice.occupancy * round), 2, 8))));
    const std::int64_t results = warps * (kWarpWidth / choice.lanes) * choice.rows * out;
    choice.store_batch = static_cast<int>(
        std::clamp<std::int64_t>(tuned.batch_bytes / results, choice.stages, tuned.most_batch));
  }
  // What does not fit gives up first the results that wait, then those of a tile, blocks, and
  // warps.
  for (;;) {
    const std::int64_t late = tuned.tail_block_bytes / (row * choice.rows * choice.warps);
    choice.tail_trips =
        many ? choice.store_batch
             : static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(late, choice.stages),
                                                       choice.store_batch / 2));
    if (make_plan(graph, target, request, choice)) return choice;
    if (choice.store_batch > std::max(4, choice.stages)) {
      choice.store_batch = std::max(choice.stages, choice.store_batch * 3 / 4);
    } else if (choice.rows > 1 && least_tile(graph, s * (kWarpWidth / choice.lanes) * choice.rows /
                                                        2) >= kLeastStagedTile) {
      choice.rows /= 2;
    } else if (choice.occupancy > 1) {
      --choice.occupancy;
    } else if (choice.warps > 1) {
      choice.warps /= 2;
    } else {
      return std::nullopt;
    }
  }
}

bool gains_from_stages(const Graph& graph, const Target& target, const PlanRequest& request) {
  const TunedStaged& tuned = tuned_for(target).staged;
  if (!target.bulk_copies || graph.inputs.empty()) return false;
  const std::int64_t s = request.segment, bytes = s * widest_input(graph);
  const int width = widest_divisor(s, widest_load(graph, target, request.base_alignment));
  const bool few = !request.is_unlimited();
  if (width == s) return !few && folds_pairs_of_words(graph, s);
  const bool several =
      graph.folds.size() > 1 && !(is_power_of_two(s / width) && folds_inputs(graph));
  const std::int64_t share = several ? tuned.least_share_of_several : tuned.least_share;
  const bool gathers = s * element_bytes(graph) >= share * sum_of_outputs(graph);
  const int loads = width * widest_input(graph);
  if (loads < tuned.wide_bytes)
    return bytes <= (has_moments(graph) ? tuned.longest_of_moments : tuned.longest_narrow);
  if (width == 1 && adds_doubles(graph))
    return gathers && !few && bytes <= tuned.longest_of_doubles;
  // One element a lane has a term that merges alone ask for.
  const bool terms = std::any_of(graph.folds.begin(), graph.folds.end(),
                                 [](const Fold& fold) { return fold.relative.has_value(); });
  if (width == 1 && terms) return !few && bytes <= tuned.longest_wide;
  const bool more = has_moments(graph) || needs_order(graph) || width == 1;
  const std::int64_t half = more ? tuned.longest_half_of_more : tuned.longest_half;
  const std::int64_t wide = more ? tuned.longest_wide_of_more : tuned.longest_wide;
  return gathers && !few && bytes <= (loads < target.vector_bytes ? half : wide);
}

}  // namespace chainfold::codegen
