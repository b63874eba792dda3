// Plans of scans: which strategy serves which segments, and what follows from a choice.
//
// A row is one load of every lane of a warp; a warp's run is `depth` rows one behind the other.
// Rows stay in registers between their fold and their scan (`in_registers`). Or the run is a range
// that is read twice, which suits a CPU, whose cache keeps it.
//
// - `scan_tile`: a warp's run holds whole segments. Where their size is no multiple of a load, a
//   run holds as many as make it one, and heads lie anywhere in lanes.
// - `scan_run`: a warp owns segments one by one, and reads them twice if folds are broadcast to
//   elements. On a CPU a thread may own the whole input; where it is little, the thread is done
//   before others wake up.
// - `scan_block`: a block owns a segment, its warps a run each. Where the size is no multiple of a
//   load, a block may hold as many segments as make it one, with heads anywhere in lanes.
// - `look_back`: segments take several tiles of a block, in one launch, and blocks wait for each
//   other. Of a run's rows the `staged` that are scanned last may come through shared memory; the
//   others stay in registers. Tiles may be of all segments, one behind the other (`heads`): they
//   lie on lines of memory, and segments begin anywhere in them. In the look-back window, `near`
//   groups before the own one are looked at tile by tile, others by their folds. Tickets of several
//   segments may be interleaved (`across`). In whole runs lanes may scan a part each by themselves
//   (`blocked`).
// - `look_ahead`: the same by a persistent loop, with copies of the next tiles to shared memory
//   under way, or, of a CPU, into its cache. A tile's fold is published one tile before it is
//   scanned.
// - `propagate`: the same without waiting, in three launches, and the input is read twice. Where
//   tiles are few, there are two (`direct`): each tile folds the states before it itself. Where the
//   size of segments is no multiple of a load, they begin and end within loads of their first and
//   last tile.
//
// Sums of inputs that a matrix instruction takes may be scanned by quads (Unit::mma_scan, of
// choices that say mma). A lane's load is then its fragment of operand A, so the instruction says
// how wide it is. `bytes` chooses among instructions: 16 bytes of f16 are m16n8k16, 8 are m16n8k8.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/loads.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/staged.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// Rows of the smallest tiles of few elements, which are short enough for one code with masks.
inline constexpr int kSmallTileRows = 4;
/// Rows of one segment that are added up as plain values before the state of what comes before them
/// is merged. Merges of that state wait for each other, and each row more is a rounding more.
inline constexpr int kRowsAState = 4;
/// Bytes an element of the widest input or output with a value an element.
int widest_of_scan(const Graph& graph);
/// Bytes an element of the widest output with a value an element; 1 without such outputs.
int widest_output(const Graph& graph);
/// Whether 32 elements of so many bytes are whole lines of memory.
constexpr bool rows_are_lines(int element) { return kWarpWidth * element % kLineBytes == 0; }
/// Whether all outputs of elements have such rows. Each of these then lies apart from all inputs in
/// a launch with non-temporal stores, which compares the addresses of those that it stores so.
bool all_rows_are_lines(const Graph& graph);
/// The program's buffer of the narrowest output with a value an element that has such rows; -1:
/// there is none.
int lines_along(const Graph& graph);
/// Whether launches with non-temporal stores store the row in which a segment ends and the next
/// begins once. They do for a CPU's segments whose rows begin with lines of memory
/// (PlanHints::to_lines).
inline bool has_seams(const Plan& plan) {
  return plan.hints.to_lines && plan.strategy == Strategy::scan_run && plan.segment > 0;
}
/// Elements of `element` bytes that a lane loads at once at most, one at least, with pointers
/// aligned as the request says.
int widest_load(const Target& target, const PlanRequest& request, int element);
/// Whether segments of several tiles begin within a load. A segment's tiles lie on loads, and some
/// elements of the first one and the last one belong to its neighbours.
bool begins_in_loads(const Plan& plan);
/// Tiles of a segment, where tiles are of one segment.
std::int64_t tiles_of_segment(const Plan& plan);
/// Whether shared memory holds what a block of several segments (scan_block) keeps there, for as
/// many blocks a multiprocessor as the plan wants.
bool group_fits(const Plan& plan, const Graph& graph, const Target& target);
/// Whether rows of `width` elements a lane that begin at a head hold whole segments, which begin
/// with lanes or end within them.
bool rows_hold_segments(std::int64_t segment, int width);
/// Whether tiles may be of all segments.
bool heads_serve(const Graph& graph, std::int64_t segment);
/// Levels of the tree in which tiles that wait are folded (lower/scan/tile_tree.hpp). At a level a
/// tile looks at the slots of its own group and of those in the look-back window
/// (ScanPlan::window): tree_looks() groups.
inline constexpr int kTreeLevels = 3;
int tree_looks(const Plan& plan, int level);
/// Whether a block has a warp for each such group, or tiles are one warp's ranges.
bool window_serves(const Plan& plan);
/// Whether ScanPlan::interleaved is legal: tiles wait, each for others of its own segment alone.
bool interleaving_serves(const Plan& plan);
/// Whether a graph has one input, and one output with a value an element, which has its type. The
/// output may then take the input's place in shared memory.
bool copies_out(const Graph& graph);
/// Whether ScanPlan::blocked is legal: copies_out() admits the runs, which are in whole tiles but
/// for few. Their rows are of the widest loads, and no more of them are kept than staged.
bool blocked_serves(const Plan& plan, const Graph& graph);
/// What ScanPlan::ragged is: tiles may end anywhere, and those that are not whole are few.
bool is_ragged(const Plan& plan, const Graph& graph);
/// Whether ScanPlan::direct is legal: what a tile needs lies before it, and its warps share memory.
bool direct_serves(const Plan& plan, const Graph& graph, const Target& target);
/// Elements of a warp's run that come through shared memory.
std::int64_t staged_elements(const Plan& plan);
/// How they lie there: a copy touches the run alone.
StageCopy run_copy(const Plan& plan, DType input);
/// Shared memory of a block of tiles that are staged, of inputs in any place.
std::int64_t staged_tile_bytes(const Plan& plan, const Graph& graph);
/// Whether that fits the target, for as many blocks a multiprocessor as the plan wants.
bool staged_tiles_fit(const Plan& plan, const Graph& graph, const Target& target);
/// Whether a lane has one segment's end at most in a load of `width` elements, if folds are
/// broadcast to elements.
bool lanes_keep_ends(const Graph& graph, std::int64_t segment, int width);
/// Neighbours that a quad of lanes sums at once.
std::int64_t quad_of(const Plan& plan);
/// Whether the segments of rows begin and end with quads, or lie within them.
bool fits_quads(const Plan& plan);
void verify_scan(const Plan& plan, const Graph& graph, const Target& target,
                 const RequireRule& require);
/// Whether running values wait: for the fold of their segment, or for the other direction's.
bool values_wait(const Graph& graph);
int cpu_range_depth(const Graph& graph);

}  // namespace chainfold::codegen
