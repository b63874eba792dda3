// Plans of scans: which strategy serves which segments, and what follows from a choice.
//
// Rows. A row is one load of every lane of a warp; a warp's run is `depth` rows one behind the
// other, which stay in registers between their fold and their scan (`in_registers`), or a range
// that is read twice, which suits a CPU, whose cache keeps it.
//
// scan_tile: a warp's run holds whole segments. Where the size of segments is no multiple of a
//   load, a run holds as many as make it one, and heads lie anywhere in lanes.
// scan_run: a warp owns segments one by one, and reads them twice if elements ask for folds. On a
//   CPU a thread may own everything, which is there before others wake up where it is little.
// scan_block: a block owns a segment, its warps a run each. Where the size of segments is no
//   multiple of a load, a block may hold as many as make it one, with heads anywhere in lanes.
// look_back: segments take several tiles of a block; one launch, blocks wait for each other. Of a
//   run's rows the `staged` that are scanned last may come through shared memory, the others stay
//   in registers. Tiles may be of all segments, one behind the other (`heads`): they lie on lines
//   of memory, and segments begin anywhere in them. `near` groups of tiles before the own one are
//   looked at tile by tile, others by their folds. Tiles of one segment may be taken in turn with
//   those of others (`across`). Of runs that are all there lanes may scan a part each by themselves
//   (`blocked`).
// look_ahead: the same by blocks that stay and take tile after tile, with copies of the next ones
//   to shared memory under way, or, of a CPU, into its cache; a tile's fold is published one tile
//   before it is scanned.
// propagate: the same without waiting, in three launches, and the input is read twice. Where tiles
//   are few, two (`direct`): each tile folds the states before it itself. Where the size of
//   segments is no multiple of a load, a segment begins and ends within loads of its first and last
//   tile.
//
// Sums of inputs that a matrix instruction takes may be scanned by quads (Unit::mma_scan, of
// choices that say mma): a lane's load is then its fragment of operand A, so the instruction says
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
/// is merged: its merges wait for each other, and each row more is a rounding more.
inline constexpr int kRowsAState = 4;
/// Bytes an element of the widest input or output with a value an element.
int widest_of_scan(const Graph& graph);
/// Bytes an element of the widest output with a value an element; 1 without such outputs.
int widest_output(const Graph& graph);
/// Whether 32 elements of so many bytes are whole lines of memory.
constexpr bool rows_are_lines(int element) { return kWarpWidth * element % kLineBytes == 0; }
/// Whether they are of all outputs of elements: then each of these lies apart from all inputs in a
/// launch that streams, as those are compared of which something is stored past the caches.
bool all_rows_are_lines(const Graph& graph);
/// The program's buffer of the narrowest output with a value an element of whose rows that is true;
/// -1: there is none.
int lines_along(const Graph& graph);
/// Whether launches that stream store the row in which a segment ends and the next begins once: of
/// a CPU's segments in rows that begin with lines of memory (PlanHints::to_lines).
inline bool has_seams(const Plan& plan) {
  return plan.hints.to_lines && plan.strategy == Strategy::scan_run && plan.segment > 0;
}
/// Elements of `element` bytes that a lane loads at once at most, one at least, with pointers
/// aligned as the request says.
int widest_load(const Target& target, const PlanRequest& request, int element);
/// Whether segments of several tiles begin within a load: a segment's tiles lie on loads, and of
/// the first one and the last one some elements belong to its neighbours.
bool begins_in_loads(const Plan& plan);
/// Tiles of a segment, which are tiles of one.
std::int64_t tiles_of_segment(const Plan& plan);
/// Whether shared memory holds what a block of several segments (scan_block) keeps there, as often
/// as the plan wants blocks resident.
bool group_fits(const Plan& plan, const Graph& graph, const Target& target);
/// Whether rows of `width` elements a lane that begin at a head hold whole segments, which begin
/// with lanes or end within them.
bool rows_hold_segments(std::int64_t segment, int width);
/// Whether tiles may be of all segments.
bool heads_serve(const Graph& graph, std::int64_t segment);
/// Levels of the tree in which tiles that wait are folded (lower/scan/tile_tree.hpp), and the
/// groups at a level of whose slots a tile looks at each: its own, and those that ScanPlan::window
/// says.
inline constexpr int kTreeLevels = 3;
int tree_looks(const Plan& plan, int level);
/// Whether a block has a warp for each such group, or tiles are one warp's ranges.
bool window_serves(const Plan& plan);
/// Whether ScanPlan::interleaved is legal: tiles wait, each for others of its own segment alone.
bool interleaving_serves(const Plan& plan);
/// Whether a graph has one input, and one output with a value an element, which has its type: then
/// the one may take the other's place in shared memory.
bool copies_out(const Graph& graph);
/// Whether ScanPlan::blocked is legal: runs that copies_out() admits, in whole tiles but for few,
/// of rows of the widest loads, and no more of them kept than staged.
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
/// Whether that fits the target, as often as the plan wants blocks resident.
bool staged_tiles_fit(const Plan& plan, const Graph& graph, const Target& target);
/// Whether segments may begin within a lane's load.
bool may_begin_anywhere(const Graph& graph);
/// Whether a lane has one segment's end at most in a load of `width` elements, if elements ask for
/// what is there.
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
