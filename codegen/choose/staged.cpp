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

constexpr int kUsualLoads = 128;
/// Bytes under way a multiprocessor that keep memory busy; more let some multiprocessors run ahead
/// of others (measured on an H200: 64 KiB 0.97, 128 KiB 0.94 of the ceiling at 64 f16 a segment).
constexpr std::int64_t kBytesInFlight = 64 * 1024;

/// Bytes of a tile: shorter ones cost more copies and waits than they save, longer ones do not fit.
/// Words of several elements that segments straddle take more instructions, which longer tiles
/// share the others with; so do segments of kLongBytes, whose results leave room (measured on an
/// H200: 200, 300, 500 and 777 f16 a segment 0.978 of the ceiling, of longer tiles 0.984 to 0.990).
constexpr std::int64_t kShortTile = 1536, kShortTileOfWords = 2048, kLongTile = 12 * 1024;

constexpr std::int64_t kShortTileOfLong = 3 * 1024, kLongBytes = 384;
/// Results of a block that wait to be stored together, in bytes (measured on an H200, 64 and 16
/// KiB: 32 f16 a segment 0.973 and 0.961 of the ceiling); the most tiles a warp.
constexpr std::int64_t kBurstBytes = 64 * 1024;

/// Where less than kManyShare bytes are read for a byte of results, blocks of one burst each, of so
/// many bytes that are read, are better than any turns, with more under way (measured on an H200 in
/// turns and so: 3 f16 a segment 0.976 and 1.003, 5 0.958 and 0.995, 6 0.972 and 0.991, 7 0.972 and
/// 0.989).
constexpr std::int64_t kManyShare = 16, kBytesOfBurst = 48 * 1024;

constexpr std::int64_t kBytesInFlightOfBursts = 96 * 1024;
/// Up to so many bytes that are read for a byte of results, blocks that read and write once, as
/// many of them as fit, are better still: a ring of copies comes to its second turn only when its
/// results wait (measured on an H200 by the bursts above and so: i8 to i32 of 3 a segment 0.85 and
/// 0.93, of 5 0.96 and 0.99, of 6 0.82 and 0.99, i8 to i64 of 3 0.89 and 0.99, of 5 0.96 and 0.98,
/// f16 to f32 of 3 0.987 both).
constexpr std::int64_t kOneRoundShare = 2;

constexpr int kRowsOfOneRound = 16, kWarpsOfOneRound = 4;
constexpr int kMostBlocksOfOneRound = 8, kLeastBlocksOfOneRound = 4;
/// Bytes that a lane of such a block reads of pairs of words and larger elements: of f32 by 32, 64
/// and 128 bytes 1.008, 0.999 and 1.000 of the ceiling, by rows 0.997 (an H200; of f64 1.007 and
/// 0.999, of i32 1.007 and 0.998).
constexpr int kPairBytes = 32;

/// Bytes of a block that comes late (measured on an H200, without such blocks, by 64 and by 128
/// KiB: 64 f16 a segment 0.983, 0.992 and 0.991, 32 0.972, 0.980 and 0.980, 500 0.985, 0.991 and
/// 0.990).
constexpr std::int64_t kLateBytes = 96 * 1024;

constexpr int kMostBurst = 512;
constexpr int kBanks = 32;
/// Bytes read for a byte of results below which results are so much of the traffic that to gather
/// them gains nothing (measured on an H200 for f16, f32, f64 and i8); several folds of one input
/// gain earlier, because copies leave their warps free, but where rows leave no lane idle and fold
/// inputs as they are (mean and variance, f16, of 16 a segment 0.98 by rows and 0.96 staged, of 32
/// 0.97 and 0.95, of 48 0.81 and 0.95; mean and root mean square of 32 0.90 and 0.96).
constexpr std::int64_t kLeastShare = 24, kLeastShareOfSeveral = 8;

/// Loads below so many bytes a lane make short work of memory's bandwidth, staged or not at all.
constexpr int kWideBytes = 8;

/// The longest segments, in bytes, that gain: of those that the widest loads read as well, of those
/// that half as wide ones read, and of others. Rows of more are in step with memory on devices of
/// every bandwidth, where blocks that stay for all of them reach 0.98 on an H100 (2^30 f16 on it,
/// staged and by rows: 300 0.975 and 1.006, 500 0.968 and 1.005, 600 0.978 and 1.004, 1000 0.978
/// and 1.002, 1500 0.977 and 1.006, dot products of 500 0.958 and 0.991, minima and maxima of 500
/// 0.965 and 0.986; f64 of 128 0.970 and 0.946, of 200 0.974 and 0.986; on an H200 f16 of 500 0.997
/// and 1.007, of 512 1.004 and 0.998, of 1000 1.001 and 1.005, i8 of 1000 0.998 and 1.009, f64 of
/// 256 0.997 and 1.011).
constexpr std::int64_t kLongestWide = 1024, kLongestHalf = 960, kLongestNarrow = 6 * 1024;

/// The same of moments and of folds in order, which take more than memory does (means and variances
/// of 1000 f16 on an H200 0.994 staged, 0.984 by rows), and of loads of a single element.
constexpr std::int64_t kLongestWideOfMore = 2 * 1024, kLongestHalfOfMore = 8 * 1024;

/// The same of moments that narrow loads read (means and variances of f16 on an H200, of the
/// ceiling, by rows with edges and staged: 2003 0.71 and 0.99, 4099 0.86 and 0.99, 7001 0.93 and
/// 0.98; 8191 0.97 by rows, and no longer room for stages).
constexpr std::int64_t kLongestOfMoments = 14 * 1024;

/// The same of sums of f64, which other rows read as well (rows.cpp).
constexpr std::int64_t kLongestOfDoubles = 3 * 1024;

/// Merges of a lane in a kernel's text: what more of them cost to compile, no run pays back.
constexpr std::int64_t kMostMerges = 1024;

/// Those of an element of moments that a whole warp shares, whose states are merged once a batch.
constexpr std::int64_t kStepsOfMoments = 4;

int sum_of_outputs(const Graph& graph) {
  int bytes = 0;
  for (const NodeId output : graph.outputs) bytes += size_of(graph.node(output).type);
  return bytes;
}

/// Cycles that shared memory takes for one load of `width` elements a lane, where lane l begins at
/// (l / lanes) * segment + (l % lanes) * width, or at the load's boundary before that: as many as
/// words of the busiest bank, for each group of lanes that is served together.
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

/// Cycles of a multiprocessor a segment: its loads from shared memory, and a quarter of the
/// instructions of a warp that adds up what they bring and then its lanes.
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
std::int64_t merge_steps(const Graph& graph, bool batched = false) {
  std::int64_t steps = 0;
  for (const Fold& fold : graph.folds) {
    const auto whole = static_cast<std::int64_t>(fold.merge.steps.size() + fold.lift.steps.size());
    steps += fold.tile ? 1 : fold.moments && batched ? kStepsOfMoments : whole;
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
  choice.warps = kWarpsOfOneRound;
  choice.stages = choice.burst = choice.late = 2;
  const std::int64_t merges = request.segment * merge_steps(graph);
  choice.rows = folds_pairs_of_words(graph, request.segment)
                    ? kPairBytes / (2 * widest_input(graph))
                    : kRowsOfOneRound;
  for (; choice.rows > 0; choice.rows /= 2) {
    if (choice.rows > 1 && choice.rows * merges > kMostMerges) continue;
    for (choice.blocks = kMostBlocksOfOneRound; choice.blocks >= kLeastBlocksOfOneRound;
         --choice.blocks) {
      if (make_plan(graph, target, request, choice)) return choice;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<PlanChoice> staged_choice(const Graph& graph, const Target& target,
                                        const PlanRequest& request) {
  const std::int64_t s = request.segment;
  if (!target.async_copies || s < 1 || graph.inputs.empty()) return std::nullopt;
  const int bytes = element_bytes(graph);
  const int widest = widest_load(graph, target, request.base_alignment);
  PlanChoice choice;
  choice.strategy = Strategy::staged;
  choice.mma = target.has_mma && request.allow_mma;
  choice.bytes = target.vector_bytes;
  choice.warps = 8;
  choice.blocks = 2;
  double least = std::numeric_limits<double>::max();
  for (int lanes = 1; lanes <= kWarpWidth; lanes *= 2) {
    const int width = staged_width(graph, s, widest, target.vector_bytes, lanes).first;
    const std::int64_t step = std::int64_t{lanes} * width;
    if (s * bytes * (kWarpWidth / lanes) > kLongTile && lanes < kWarpWidth) continue;
    const bool batched = lanes == kWarpWidth && has_moments(graph);
    if (s > std::int64_t{batched ? kMostStagedLoads : kUsualLoads} * lanes) continue;
    if (lanes > 1 && step >= 2 * s) continue;
    if (s / lanes * merge_steps(graph, batched) > kMostMerges) continue;
    const double cycles = cost(graph, s, lanes, width);
    if (cycles >= least) continue;
    least = cycles;
    choice.lanes = lanes;
  }
  if (choice.lanes == 0) return std::nullopt;
  const std::int64_t out = sum_of_outputs(graph);
  if (choice.lanes == 1 && s * bytes <= kOneRoundShare * out) {
    if (const std::optional<PlanChoice> once = one_round(graph, target, request, choice))
      return once;
  }
  const std::int64_t row = s * bytes * (kWarpWidth / choice.lanes);
  choice.rows = 1;
  const std::int64_t merges = s / choice.lanes * merge_steps(graph);
  const bool words =
      bytes == 1 && staged_width(graph, s, widest, target.vector_bytes, choice.lanes).second;
  const std::int64_t short_tile = words                    ? kShortTileOfWords
                                  : s * bytes < kLongBytes ? kShortTile
                                                           : kShortTileOfLong;
  while (row * choice.rows < short_tile && choice.rows < 8 &&
         2 * choice.rows * merges <= kMostMerges)
    choice.rows *= 2;
  const std::int64_t tile = row * choice.rows;
  const std::int64_t warps = choice.warps;
  const std::int64_t round = warps * tile;
  const bool many = s * bytes < kManyShare * out;
  if (many) {
    choice.stages = 2;
    choice.blocks = static_cast<int>(
        std::clamp<std::int64_t>(kBytesInFlightOfBursts / (round * choice.stages), 2, 4));
    choice.burst = choice.late = static_cast<int>(
        std::clamp<std::int64_t>(kBytesOfBurst / round, 2 * choice.stages, kMostBurst));
  } else {
    if (4 * round > 2 * kBytesInFlight) choice.blocks = 1;
    choice.stages = static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(
        std::clamp<std::int64_t>(kBytesInFlight / (choice.blocks * round), 2, 8))));
    const std::int64_t results = warps * (kWarpWidth / choice.lanes) * choice.rows * out;
    choice.burst = static_cast<int>(
        std::clamp<std::int64_t>(kBurstBytes / results, choice.stages, kMostBurst));
  }
  // What does not fit gives up first the results that wait, then those of a tile, then warps.
  for (;;) {
    const std::int64_t late = kLateBytes / (row * choice.rows * choice.warps);
    choice.late = many ? choice.burst
                       : static_cast<int>(std::min<std::int64_t>(
                             std::max<std::int64_t>(late, choice.stages), choice.burst / 2));
    if (make_plan(graph, target, request, choice)) return choice;
    if (choice.burst > std::max(4, choice.stages)) {
      choice.burst = std::max(choice.stages, choice.burst * 3 / 4);
    } else if (choice.rows > 1 && least_tile(graph, s * (kWarpWidth / choice.lanes) * choice.rows /
                                                        2) >= kLeastStagedTile) {
      choice.rows /= 2;
    } else if (choice.blocks > 1) {
      --choice.blocks;
    } else if (choice.warps > 1) {
      choice.warps /= 2;
    } else {
      return std::nullopt;
    }
  }
}

bool gains_from_stages(const Graph& graph, const Target& target, const PlanRequest& request) {
  if (!target.bulk_copies || graph.inputs.empty()) return false;
  const std::int64_t s = request.segment, bytes = s * widest_input(graph);
  const int width = widest_divisor(s, widest_load(graph, target, request.base_alignment));
  const bool few = request.most_elements > 0;
  if (width == s) return !few && folds_pairs_of_words(graph, s);
  const bool several =
      graph.folds.size() > 1 && !(is_power_of_two(s / width) && folds_inputs(graph));
  const std::int64_t share = several ? kLeastShareOfSeveral : kLeastShare;
  const bool gathers = s * element_bytes(graph) >= share * sum_of_outputs(graph);
  const int loads = width * widest_input(graph);
  if (loads < kWideBytes) return bytes <= (has_moments(graph) ? kLongestOfMoments : kLongestNarrow);
  if (width == 1 && adds_doubles(graph)) return gathers && !few && bytes <= kLongestOfDoubles;
  const bool more = has_moments(graph) || needs_order(graph) || width == 1;
  const std::int64_t half = more ? kLongestHalfOfMore : kLongestHalf;
  const std::int64_t wide = more ? kLongestWideOfMore : kLongestWide;
  return gathers && !few && bytes <= (loads < target.vector_bytes ? half : wide);
}

}  // namespace chainfold::codegen
