// Plan: how a graph is computed on a target for one segment size. A plan is data: the lowerings
// read it, choose_plan makes the default one, a tuner may try others.
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/plan/request.hpp"

namespace chainfold::codegen {

/// The first decision of a plan: who owns a segment, and how blocks meet.
/// - `rows`: groups of lanes own whole segments, many segments a warp, or one.
/// - `elements`: segments of one element, of which each lane's load holds several side by side.
/// - `parts`: segments are cut into parts, one a block; a second launch merges the parts' states.
/// - `staged`: rows whose elements pass through shared memory. A few blocks stay for most of the
///   launch, in a persistent loop. Each warp has copies of its next tiles under way, and results
///   are stored in batches.
/// - `columns`: lanes own adjacent columns of a matrix; a block's warps take different rows. Where
///   the columns are few, blocks take parts of the rows, whose states a second launch merges.
/// - `merge_path`: of segments that data decide. Elements and ends of segments, merged, are cut
///   into equal stretches, one a warp. A further launch finishes segments that lie in several.
/// - `head_tiles`: of segments that a condition begins. Elements are cut into such stretches.
/// - `scan_tile`, `scan_run`, `scan_block`, `look_back`, `look_ahead`, `propagate`: of scans
///   (scan.hpp).
/// - The others are the algorithms of the papers on sums by tensor cores, under their names
///   (published.hpp). `padded` has no name there.
enum class Strategy : std::uint8_t {
  rows,
  elements,
  parts,
  staged,
  columns,
  merge_path,
  head_tiles,
  scan_tile,
  scan_run,
  scan_block,
  look_back,
  look_ahead,
  propagate,
  reduction16,
  strided16n,
  coalesced16n,
  reduction256,
  inefficient256n,
  efficient256n,
  block256n,
  grid256n,
  recurrence,
  single_pass,
  split,
  padded,
  scan16,
  scan16n,
  scan256,
  scan256n,
  scan_block256n,
  scan_grid256n,
};
/// The families of strategies follow each other in this order: folds of our own, scans, the papers'
/// folds, the papers' scans. A scan gives each element a value.
constexpr bool is_scan(Strategy strategy) {
  return strategy >= Strategy::scan_tile && strategy <= Strategy::propagate;
}
/// Whether data tell the segments, and warps take stretches of them.
constexpr bool takes_stretches(Strategy strategy) {
  return strategy == Strategy::merge_path || strategy == Strategy::head_tiles;
}
constexpr bool is_published(Strategy strategy) {
  return strategy >= Strategy::reduction16 && strategy <= Strategy::padded;
}
constexpr bool is_published_scan(Strategy strategy) {
  return strategy >= Strategy::scan16 && strategy <= Strategy::scan_grid256n;
}

/// How one fold combines the elements of a tile:
/// - `simt`: lane by lane.
/// - `mma_ones`: by P * data on the tensor cores.
/// - `mma_diagonal`: sums of products of two inputs, with data as both operands; the diagonal holds
///   the sums.
/// - `mma_scan`: of scans, data * U, which gives lanes the prefixes of their own elements within a
///   quad.
enum class Unit : std::uint8_t { simt, mma_ones, mma_diagonal, mma_scan };
struct FoldPlan {
  Unit unit = Unit::simt;
  int mma_row = -1;
  double error_bound_u = 0;  ///< in units of 2^-24 (2^-53 for f64) times the sum of absolute values
};
/// What plans promise about their results, and what they do for that.
struct PlanPromises {
  Accuracy accuracy = Accuracy::accurate;
  NonFinite nonfinite = NonFinite::ieee;
  Determinism determinism = Determinism::run_to_run;
  bool guard = false;  ///< tiles with non-finite results are redone without the tensor core
};

/// What makes loads and stores faster and changes nothing else (hints.hpp).
struct PlanHints {
  /// How many elements behind those that it reads from memory a CPU's thread asks for meanwhile:
  /// ahead_of() this plan (streams.hpp). 0: it asks for none.
  std::int64_t read_ahead = 0;
  /// rows, parts, columns: a warp's loads take lines of which hardly any other takes something, so
  /// the first-level cache may evict them first (Target::evict_first_bytes).
  bool evict_first = false;
  /// rows, parts, lanes in vectors: half_vectors_do() of this plan.
  bool half_vectors = false;
  /// Rows, parts, columns: interleaved streams that a CPU's thread reads, streams_of() this plan
  /// (streams.hpp). Of rows without a loop, blocks are dealt to them (Launch::streams). Of columns
  /// these are the rows of a batch, else the loads of a batch.
  int streams = 1;
  /// rows, parts, ranges of scans, lanes in vectors: within loops a batch's elements are compared
  /// with the best value so far, and only where one is better its place is looked for
  /// (Fold::place).
  bool screens = false;
  /// Scans, a CPU's rows: bytes of an output from which on its stores are non-temporal; 0: never.
  std::int64_t non_temporal_from = 0;
  /// Scans: where stores are non-temporal, rows of ranges begin with lines of memory, wherever
  /// outputs and ranges do. The first and the last row have gaps for that.
  bool to_lines = false;
};

/// Of staged plans.
struct StagedPlan {
  /// Segments begin anywhere within loads, of which lanes keep what is theirs.
  bool straddle = false;
  int store_batch = 0;  ///< tiles of a warp that follow each other and are stored together
  /// Trips of each tail block (a tile a warp), which starts when another block has ended.
  /// `store_batch`: every block is such, and takes one batch. With 0 there are no tail blocks.
  int tail_trips = 0;
};

/// Of segments that data tell.
struct PathPlan {
  /// A stretch takes its segments one after the other. Folds of so many elements or more are by all
  /// lanes, the others and scans one element behind the other. 0: it is cut into tiles. For lanes
  /// in vectors, which exchange nothing cheaply.
  int apart = 0;
};

/// Of columns.
struct ColumnsPlan {
  /// Rows so many apart begin equally far off a load's boundary, and each warp takes rows of one
  /// such phase. With 1 every row begins on the width of loads.
  int phases = 1;
  /// How many columns a block walks along, row by row, while their states wait in scratch. It is
  /// for processors that read long runs much faster. With 0 a block's states stay in registers.
  std::int64_t strip = 0;
};

/// Of parts, and of columns whose rows have parts.
struct PartsPlan {
  std::int64_t quantum = 0;  ///< a part's length is a multiple of this
  /// As many parts of a segment fill the target; merge_path, head_tiles: stretches.
  std::int64_t wanted = 0;
  /// As long as so many parts are left, each grows up to kMostQuanta quanta. 0: they do not.
  std::int64_t few = 0;
  /// Blocks that the target holds at once. Segments that few parts each cannot share out evenly
  /// have a few more. 0: parts wait for no such wave.
  std::int64_t wave = 0;
  /// The blocks of a segment are one cluster of so many. They tell each other what they have
  /// folded, so that there is one launch. 0: no cluster.
  int cluster = 0;
};

/// Of scans.
struct ScanPlan {
  std::int64_t tile_segments = 0;  ///< scan_tile, scan_run: segments of a warp
  std::int64_t tile = 0;           ///< look_back, look_ahead, propagate: elements of a tile
  /// look_back, look_ahead: of a run's rows those that are scanned last, which come through shared
  /// memory.
  int staged_rows = 0;
  /// look_back: tiles are of all segments, one behind the other, which begin anywhere in them.
  bool heads = false;
  /// look_back, a CPU's look_ahead: the look-back window, groups of 32 tiles before the own one
  /// whose tiles are looked at one by one.
  int window = 0;
  /// Of look_back: segments whose tickets are interleaved, so that few of the tiles that wait at a
  /// time wait for each other. With 0 one segment follows the other.
  int interleaved = 0;
  /// Of look_back: whole runs have a blocked arrangement, each lane's part of them one behind the
  /// other (lower/scan/blocked.hpp). They go through shared memory both ways.
  bool blocked = false;
  /// Of look_back, look_ahead, propagate: whole tiles have code of their own, whose rows have no
  /// masks. Other tiles are rows that have.
  bool ragged = false;
  /// Of propagate: every tile folds the states of those before it, and no launch does so in
  /// between.
  bool direct = false;
  /// propagate: warps of the block that scans the states of a segment's tiles, and states that a
  /// lane takes at once.
  int state_warps = 1, states_a_lane = 1;
  /// Rows of a warp's run stay in registers; else its elements are read twice.
  bool in_registers = true;
  int range_depth = 1;  ///< rows at once of what is not in registers
  /// What is not in registers: elements a lane of whole rows. Such a row counts as so many rows;
  /// what is left has rows of one element a lane.
  int range_width = 1;
  int range_load = 1;  ///< the same: elements a lane of what is folded before it is scanned
};

/// Of published strategies.
struct PublishedPlan {
  int chain = 0;         ///< products that one accumulator takes; 0: all of a segment's or warp's
  bool product = false;  ///< a second product adds up the columns, which are rounded for it
  int fraction = 0;      ///< split: of the elements, those on tensor cores, in percent
  bool atomics = false;  ///< single_pass: blocks add to the output in any order
};

struct Plan {
  Strategy strategy = Strategy::rows;
  /// Elements a segment, 0: known at launch (is_whole); of columns: how many.
  std::int64_t segment = 0;
  int load_width = 1;          ///< elements of each input a lane loads at once
  int depth = 1;               ///< such loads a lane has in flight along its segment
  int lanes_per_segment = 32;  ///< rows, columns: lanes that share a segment; a power of two
  /// rows: segments a group of lanes handles at once; columns: loads side by side of a warp. A
  /// power of two.
  /// merge_path: rows of a tile.
  int rows = 1;
  int loads_at_once = 1024;  ///< of a segment that a lane holds before it adds them up (staged)
  /// rows, columns: all loads of a tile are issued before the first use, and added up as a tree.
  bool load_rows_first = true;
  /// Loads of a lane whose moments have a mean of their own and are merged with others as states.
  /// Segments of rows that do not exist then count as zeros, since their results go nowhere, so
  /// that counts are known while compiling. With 0 a batch's loads have one mean. In rows all lanes
  /// that share a segment then have one: they exchange sums for it first and have no counts.
  int mean_loads = 0;
  bool edges = false;           ///< segments may begin off the load width: scalar head and tail
  bool strided = false;         ///< inputs' strides are parameters of the launch
  int warps = 8;                ///< warps a block
  bool combine_states = false;  ///< lanes merge whole states (compensated), not rounded values
  /// Rows and scans: lanes are elements of vectors (Target::vector_lanes). Both sides of a merge of
  /// two rows are then patterns of lanes of both (RowMerges); else lanes are exchanged.
  bool vector_lanes = false;
  /// Tiles in shared memory or on their way, of staged (a power of two) and look_ahead. A CPU's:
  /// one more than those that a thread takes before it scans one.
  int stages = 0;
  int occupancy = 0;        ///< parts, staged, columns, scans: blocks a multiprocessor
  std::int64_t blocks = 0;  ///< staged, look_ahead: those that stay, at most; published: all
  StagedPlan staged{};
  ColumnsPlan columns{};
  PathPlan path{};
  PartsPlan parts{};
  ScanPlan scan{};
  PublishedPlan published{};
  std::vector<FoldPlan> folds;  ///< one a fold of the graph
  PlanHints hints{};
  PlanPromises promises{};
  int launches = 1;
  int base_alignment = 16;
  std::int64_t state_bytes =
      0;  ///< of all folds' states of one part: scratch and carry are made of it

  /// Whether there is one segment, of a length that is known at launch.
  [[nodiscard]] bool is_whole() const { return segment == 0; }
  /// Whether several segments share a quad of lanes, and with it a column of a matrix instruction.
  [[nodiscard]] bool shares_quads() const {
    return strategy != Strategy::parts && strategy != Strategy::columns && lanes_per_segment < 4;
  }
  /// Of staged: every block takes one store batch. Else some stay for many, and tail blocks follow.
  [[nodiscard]] bool one_batch() const {
    return staged.tail_trips > 0 && staged.tail_trips == staged.store_batch;
  }
  [[nodiscard]] bool has_tail_blocks() const {
    return staged.tail_trips > 0 && staged.tail_trips < staged.store_batch;
  }
  /// Segments one warp handles at once (rows, elements, staged); columns: loads side by side.
  [[nodiscard]] int segments_per_warp() const {
    if (strategy == Strategy::elements) return kWarpWidth * load_width * depth;
    return kWarpWidth / lanes_per_segment * rows;
  }
  /// Columns of a block (columns).
  [[nodiscard]] std::int64_t columns_per_block() const {
    // Phased windows bring a load more than the band has.
    const std::int64_t own = segments_per_warp() - (columns.phases > 1 ? 1 : 0);
    return columns.strip > 0 ? columns.strip : own * load_width;
  }
  /// Loads that a segment takes of each of its lanes (rows, staged).
  [[nodiscard]] int loads_a_lane() const {
    const std::int64_t step = static_cast<std::int64_t>(lanes_per_segment) * load_width;
    const std::int64_t spread = segment + (staged.straddle ? load_width - 1 : 0);
    return static_cast<int>((spread + step - 1) / step);
  }
  /// Whether a segment ends within a load, whose elements behind it are masked one by one (rows).
  [[nodiscard]] bool has_partial_loads() const {
    return strategy == Strategy::rows && !edges && segment % load_width != 0;
  }
  /// Batches of a warp's segment (rows) up to which each has code of its own; of more there is a
  /// loop, which carries states. Vectors have no room for two batches' loads, and processors that
  /// look far ahead have read the next one's before this one's are folded.
  static constexpr int kMostBatches = 2;
  [[nodiscard]] int most_batches() const { return vector_lanes ? kMostBatches : 1; }
  /// Whether a segment has more batches than that (rows).
  [[nodiscard]] bool has_loop() const {
    return segment / (static_cast<std::int64_t>(kWarpWidth) * load_width * depth) > most_batches();
  }
};
/// Whether sums of a published plan are rounded to the inputs' type on their way.
inline bool rounds_sums(const Plan& plan) {
  if (is_published_scan(plan.strategy)) return plan.published.product;
  return is_published(plan.strategy) &&
         (plan.published.product || plan.strategy == Strategy::recurrence);
}

}  // namespace chainfold::codegen
