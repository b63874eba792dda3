// The parts strategy's decisions: how many blocks share a segment, and what of it is under way.
#include "chainfold/codegen/choose/parts.hpp"

#include <algorithm>
#include <cstdint>

#include "chainfold/codegen/choose/any.hpp"
#include "chainfold/codegen/choose/few.hpp"
#include "chainfold/codegen/choose/moments.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/units.hpp"

namespace chainfold::codegen {

namespace {

/// From here on a segment gives a block or several work: bytes of its widest input. A CPU's thread
/// takes more.
constexpr std::int64_t kPartsFromBytes = 64 * 1024, kCpuPartsFromBytes = 128 * 1024;

/// A CPU's parts do not depend on its threads, so that neither do its results.
constexpr int kCpuParts = 1024;

/// Bytes of few long segments from which on a block of theirs has 16 warps instead of 8.
constexpr std::int64_t kWideSegmentBytes = 64 * 1024;

/// Loads in flight of the warps of parts on a GPU: of few parts, and of many.
constexpr int kFewPartLoads = 8, kPartLoads = 16;

/// Rounds of such loads, of all warps, below which blocks of half as many share a segment. Moments
/// are better off so at any length, and warps have longer segments of them to themselves (mean and
/// variance on an H200, 2^15, 2^16, 2^18 and 2^20 f16 a segment: 0.94, 0.92, 0.979 and 0.993 of the
/// ceiling by eight warps, 0.986, 0.988, 0.992 and 0.996 so).
constexpr int kShortPartRounds = 4, kPartsOfMomentsFrom = 2;

}  // namespace

bool takes_parts(const Graph& graph, const Target& target, const PlanRequest& request) {
  const std::int64_t from = target.max_warps == 1 ? kCpuPartsFromBytes
                            : has_moments(graph)  ? kPartsOfMomentsFrom * kPartsFromBytes
                                                  : kPartsFromBytes;
  return request.segment == 0 || request.segment >= from / widest_input(graph) ||
         blocks_of_few_long(graph, target, request) > 0;
}

PlanChoice parts_choice(const Graph& graph, const Target& target, const PlanRequest& request) {
  const int blocks_of_few = blocks_of_few_long(graph, target, request);
  PlanChoice choice = any_choice(graph, target, request);
  choice.strategy = Strategy::parts;
  choice.parts = kMostParts;
  if (target.max_warps == 1) {
    choice.depth = std::max(1, choice.depth / 2);
    place_moments(choice, graph, target, widest_load(graph, target, choice.bytes), 1);
    choice.parts = kCpuParts;
  } else if (blocks_of_few > 0) {
    // All of a segment is under way at once, or in few rounds.
    const bool wide = request.segment * widest_input(graph) >= kWideSegmentBytes;
    choice.warps = blocks_of_few == 1 && wide ? 16 : 8;
    choice.depth = kFewPartLoads;
    choice.parts = blocks_of_few;
    choice.cluster = blocks_of_few > 1 ? blocks_of_few : 0;
    choice.mma = false;
  } else {
    // Merges of several fields, and loads of many inputs, are long and take many registers.
    const bool is_long =
        graph.inputs.size() > 2 ||
        std::any_of(graph.folds.begin(), graph.folds.end(), [](const Fold& fold) {
          return fold.state.size() > 1 && !fold.tile && !fold.moments && !fold.linear;
        });
    const auto up_to = [&](std::int64_t most) {
      return request.most_elements > 0 && request.most_elements <= most;
    };
    const bool few = request.most_elements > 0 || has_long_states(graph);
    choice.depth =
        is_long ? choice.depth / 2 : std::min(choice.depth, few ? kFewPartLoads : kPartLoads);
    const std::int64_t round = std::int64_t{kWarpWidth} * choice.warps * choice.depth *
                               widest_load(graph, target, std::max(1, target.vector_bytes));
    const bool is_short =
        request.segment > 0 && (has_moments(graph) || request.segment < kShortPartRounds * round);
    const bool bytes = !few && widest_input(graph) == 1;
    if (is_short || bytes || up_to(most_of_small_blocks(graph, target))) choice.warps /= 2;
    if (!few && widest_input(graph) == 2) choice.mma = false;
    if (few) choice.parts = std::min(kMostParts, target.processors * kPartWarps / choice.warps);
    if (up_to(most_of_cluster(graph, target))) {
      choice.parts = choice.cluster = target.cluster_blocks;
      choice.depth *= 2;  // as much on its way by fewer warps
    }
  }
  return choice;
}

}  // namespace chainfold::codegen
