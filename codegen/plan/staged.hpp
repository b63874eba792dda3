// Plans of staged segments: how their tiles lie in shared memory, and what follows from a choice.
#pragma once

#include <cstdint>
#include <utility>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// How one input's tiles lie in shared memory (staged).
struct StageCopy {
  int elements = 0;   ///< that a copy brings and a slot holds
  bool exact = true;  ///< tiles begin and end where copies can; else a copy brings what surrounds
                      ///< them, too
  int unit = 16;      ///< bytes; copies begin on boundaries of so many
};
/// Bytes of a staged tile at least: copies bring up to so many of the next one.
inline constexpr std::int64_t kLeastStagedTile = 256;
StageCopy stage_copy(const Plan& plan, DType input);
/// Shared memory of a staged block: stages, results that wait, and a barrier a stage.
std::int64_t staged_bytes(const Plan& plan, const Graph& graph);
/// Whether that is there for all blocks that a multiprocessor is to hold.
bool stages_fit(const Plan& plan, const Graph& graph, const Target& target);
/// Loads that a lane makes of one segment, all of them in the kernel's text; by default so many
/// only of moments, which gain most.
inline constexpr int kMostStagedLoads = 256;
/// Bytes of a bank of shared memory.
inline constexpr int kBankBytes = 4;
/// Bytes of a tile of the input that has the fewest.
std::int64_t least_tile(const Graph& graph, std::int64_t elements);
/// The width of a lane's loads, and whether segments straddle them: shared memory serves words, so
/// narrower loads would cost as much and bring less. Inputs that do not begin alike cannot share
/// such loads.
std::pair<int, bool> staged_width(const Graph& graph, std::int64_t segment, int widest, int bytes,
                                  int lanes);

/// Its row of the table of strategies.
StrategyRow staged_strategy();

}  // namespace chainfold::codegen
