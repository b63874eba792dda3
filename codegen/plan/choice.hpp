// The space of plans: what may be chosen freely, and what then follows.
//
// A PlanChoice holds the decisions that change nothing but speed; everything else about a plan
// (widths, units, edges, guard, bound) follows from the graph, the target and the request. A choice
// has a text, so that it can be recorded and pinned. Those of folds do not depend on the alignment
// of pointers, so that one choice serves every launch of a segment size; of scans, a choice may be
// legal for wide loads alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

struct PlanChoice {
  Strategy strategy = Strategy::rows;
  int warps = 1;   ///< a block
  int depth = 1;   ///< loads of each input along a segment before their first use, at most;
                   ///< elements: of a lane
  int rows = 1;    ///< rows, staged: segments that a group of lanes handles at once;
                   ///< columns: runs of columns that a warp handles at once
  int lanes = 0;   ///< rows, staged: lanes that share a segment; rows: 0: those of one load
  int stages = 0;  ///< staged, look_ahead: tiles of a warp in shared memory; a CPU's: one more than
                   ///< those that a thread takes before it scans one
  int staged = 0;  ///< look_back: of the depth, loads that come through shared memory
  int heads = 0;   ///< look_back: 1: tiles of all segments, which begin anywhere in them
  int near = 0;    ///< look_back, a CPU's look_ahead: groups of tiles before the own one that are
                   ///< looked at one by one
  int blocked = 0;  ///< look_back: 1: runs in a blocked arrangement, copied in and out
  int across = 0;   ///< look_back: segments whose tiles are taken in turn; 0: one after the other
  int direct = 0;   ///< propagate: 1: every tile folds the states before it itself
  int cluster = 0;  ///< parts: a segment's are blocks of one cluster, in one launch; 0: none
  int burst = 0;    ///< staged: tiles of a warp whose results are stored together
  int late = 0;     ///< staged: rounds of tiles of a block that starts as another ends; 0: none do;
                    ///< burst: all blocks are such
  int blocks = 0;   ///< staged, columns, scans: resident blocks a processor (0: as it comes)
  int phases = 0;   ///< columns: rows so many apart begin alike, and are a warp's; 0: all do
  int strip = 0;    ///< columns: how many a block walks along, row by row; 0: it stays at its own
  int parts = 0;    ///< parts, columns: how many of them fill the target
  int tile = 0;   ///< look_back, look_ahead, propagate: 1024 elements of a tile that is read twice
  int chain = 0;  ///< published: products that one accumulator takes; 0: as many as there are
  int product = 0;   ///< published: 1: a second product adds up the columns of a square
  int fraction = 0;  ///< split: of the elements, those on tensor cores, in percent
  int bytes = 16;    ///< a lane's load, at most
  bool mma = true;   ///< tensor cores for the folds that they serve

  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

/// Parts that the merging launch can take without being noticed.
inline constexpr int kMostParts = 4096;

/// "rows warps=8 depth=1 rows=4 bytes=16 mma", "parts warps=8 depth=4 parts=2112 bytes=16 simt",
/// "staged warps=8 lanes=8 rows=4 stages=2 burst=256 late=6 blocks=2 bytes=16 mma", "columns
/// warps=8 depth=8 runs=1 parts=528 bytes=16 simt": a strategy, the decisions that it knows, and
/// its unit.
std::string to_text(const PlanChoice& choice);
/// The first words of all plans' texts: what a strategy is called.
std::vector<std::string_view> strategy_names();
/// The choice with this text. Throws UserError(invalid_argument) naming what is wrong.
PlanChoice parse_choice(std::string_view text);

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

/// Warps of a GPU's processor that keep memory busy, so that parts, and what the second launch
/// merges, are few. Measured on sm_90 from 2^16 to 2^28 elements. Of more elements there are as
/// many parts as can be, so that processors that are nearer to memory fold more of them than
/// others.
inline constexpr int kPartWarps = 16;

/// Whether segments are single elements, of which a load holds several; of vectors' lanes rows do.
bool are_elements(const Target& target, const PlanRequest& request);
/// Loads in flight beyond which no target gains: more would only be code.
inline constexpr int kDeepest = 64;
/// What the best guesses begin with: warps, unit, and the loads that a lane issues at once.
PlanChoice any_choice(const Graph& graph, const Target& target, const PlanRequest& request);
/// The best guess of each strategy. Staging is not always legal; parts need no segment size.
PlanChoice rows_choice(const Graph& graph, const Target& target, const PlanRequest& request);
PlanChoice elements_choice(const Target& target);
PlanChoice parts_choice(const Graph& graph, const Target& target, const PlanRequest& request);
std::optional<PlanChoice> staged_choice(const Graph& graph, const Target& target,
                                        const PlanRequest& request);
/// The one of columns, which have no other strategy: in phases where rows begin off wide loads and
/// that is legal, else narrow.
PlanChoice columns_choice(const Graph& graph, const Target& target, const PlanRequest& request);
/// The one whose loads are no wider than every row allows, and the one whose warps take rows that
/// begin alike, where that is legal and its loads are wider.
PlanChoice narrow_columns_choice(const Graph& graph, const Target& target,
                                 const PlanRequest& request);
std::optional<PlanChoice> phased_columns_choice(const Graph& graph, const Target& target,
                                                const PlanRequest& request);
inline bool has_columns(const Graph& graph) {
  return graph.partition.kind == Partition::Kind::columns;
}
/// Whether segments of this size are the better for being staged, as far as rules can tell.
bool gains_from_stages(const Graph& graph, const Target& target, const PlanRequest& request);

/// What serves pointers of less than the best alignment, and is legal for them if the choice is for
/// the best: segments that wide loads would read are staged where only narrow ones are allowed, and
/// scans whose runs are too short then have the default for that alignment.
PlanChoice choice_for_alignment(const Graph& graph, const Target& target,
                                const PlanRequest& request, const PlanChoice& choice);

/// Bytes an element of the widest input.
int widest_input(const Graph& graph);
/// Bytes that a lane loads at once at most: words of bf16 that become floats, and of bytes that are
/// summed up but not by columns, where the target says so; else the target's own. Not of scans.
int load_bytes(const Graph& graph, const Target& target);
/// Plan::range_width: two halves where these are floats. Then steps across lanes are half as many
/// an element, which is worth more than what takes halves of words apart and puts them together (a
/// Zen 4, in a cache, ns an element of f16 0.195 and 0.178, of bf16 0.24 and 0.15).
int range_width_of(const Graph& graph, const Target& target);
/// Plan::range_load: two of bf16, which become floats sooner than one by itself; f16 do not.
int range_load_of(const Graph& graph, const Target& target);
/// Elements of each input that a lane can load at once, in loads of so many bytes at most: the
/// pointers' alignment, where the target's loads need one.
int widest_load(const Graph& graph, const Target& target, int bytes_at_most);
/// What of a staged plan follows from its choice; `widest` elements a load at most. False where the
/// choice is not legal.
bool place_staged(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                  int widest);
bool place_elements(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                    const PlanRequest& request, int widest);
bool place_columns(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                   int widest);

/// What choose_plan takes.
PlanChoice default_choice(const Graph& graph, const Target& target, const PlanRequest& request);
/// The plan that follows from a choice; nothing where it is not legal for the graph, the request
/// (segment size, accuracy) or the target. compile_plan verifies it. Throws UserError(unsupported)
/// for requests that no plan meets.
std::optional<Plan> make_plan(const Graph& graph, const Target& target, const PlanRequest& request,
                              const PlanChoice& choice);

/// Choices worth measuring, each with another plan, the default one first. At most some dozens: the
/// default's neighbours in one or two decisions, since the decisions hardly depend on each other.
std::vector<PlanChoice> plan_space(const Graph& graph, const Target& target,
                                   const PlanRequest& request);

}  // namespace chainfold::codegen
