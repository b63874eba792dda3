// Band: the work of one block on adjacent columns of a matrix, wherever its rows come from.
//
// A row of the band is one run of memory. Each lane owns `width` adjacent columns of it, and
// `group` lanes lie side by side. Where that is less than a warp, the warp takes several rows at
// once. Rows are dealt over the warps of the block. Warps take batches in turn or, where folds need
// their order, one run of batches each. What makes no batch is taken load by load. What the warps
// end up with is merged through shared memory, neighbours first, into the first warp.
//
// Rows that begin anywhere are read in phases: those whose numbers are equal modulo `phases` begin
// equally far off a load's boundary. A warp takes rows of one phase. So its window of columns, from
// the last boundary before the band on, is one of whole loads throughout. A window has one load
// more than the band has columns. What lies beside the band is computed, too. It is dropped when
// the warp moves its states to the band's own lanes, before they are merged.
#pragma once

#include <functional>
#include <vector>

#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

class Band {
 public:
  struct Shape {
    int width = 1;       ///< columns of a lane
    int group = 32;      ///< lanes side by side
    int runs = 1;        ///< groups side by side that a warp takes one after the other
    int depth = 1;       ///< loads of each run in flight; a power of two
    int warps = 1;       ///< of the block
    bool ahead = false;  ///< all loads of a batch come first; of moments always. Else a row is
                         ///< added to what is before it as it comes
    bool far = false;    ///< rows of a batch lie as far apart as there are batches
    int phases = 1;      ///< rows so many apart begin equally far off a load's boundary
    [[nodiscard]] bool phased() const { return phases > 1; }
    /// Columns that a warp reads of a row, and those of them that are the band's.
    [[nodiscard]] int window() const { return width * group * runs; }
    [[nodiscard]] int columns() const { return phased() ? window() - width : window(); }
    [[nodiscard]] int rows_a_load() const { return kWarpWidth / group; }
  };
  struct Source {
    /// Elements between rows of each array.
    std::vector<ValueId> strides{};
    /// The matrix's row that is the band's first, and its index within its column.
    ValueId first_row = kNoValue, first_index = kNoValue;
    /// Whether rows of a load follow each other without a gap.
    bool packed = false;
    /// Rows from a load of a batch to its next (i64); kNoValue: they follow each other.
    ValueId apart = kNoValue;
    /// What lies at `at`, counted from bases[i] in array i, where rows of a load lie steps[i]
    /// apart. Lanes where `exists` is false hold nothing. Lanes where `reads` is false read
    /// nothing.
    std::function<Loaded(const std::vector<ValueId>& bases, const std::vector<ValueId>& steps,
                         const Address& at, ValueId position, ValueId exists, ValueId reads)>
        load{};
    /// Phases: the same, element by element of the lanes' loads; of the j-th of each, lanes where
    /// reads[j] is false read nothing.
    std::function<Loaded(const std::vector<ValueId>& bases, const Address& at, ValueId position,
                         const std::vector<ValueId>& reads)>
        pick{};
    /// Every fold's partial of what was loaded of one run's rows.
    std::function<Partials(const std::vector<Loaded>& rows)> fold{};
    /// Phases: how many rows, none or one (i64), must be picked: the band's first, and its last. A
    /// window of such a row may reach before the input's memory or behind it. kNoValue: none.
    ValueId picked_first = kNoValue, picked_last = kNoValue;
  };

  /// `columns` of the matrix are known when the text is made; the launch's may be fewer, by whole
  /// bands. `band` counts bands of the launch, `count` (i64) its columns.
  Band(Builder& builder, TileLowering& tile, const Shape& shape, std::int64_t columns, ValueId band,
       ValueId count);

  /// A band that begins at column `first`; lanes where `reads` (kNoValue: all do) is false have
  /// none.
  Band(Builder& builder, TileLowering& tile, const Shape& shape, ValueId first, ValueId reads);

  /// The same rows of the same columns, one load of a column at a time, by another tile.
  Band(const Band& of, TileLowering& tile);

  /// Every fold's state of each run, over the first `rows` rows of the source, in the first warp.
  /// Where a lane's do not hold (TileLowering::exceeds), its warp folds its rows once more. It
  /// takes them from `by_elements`, which gives a source for the tile that it is given.
  using SourceOf = std::function<Source(TileLowering&)>;
  std::vector<Partials> fold(const Source& source, ValueId rows, const SourceOf& by_elements = {});

  /// Where a run of the band lies in a row of columns (column_of). Its lanes that own the column of
  /// this element of their vectors (owners; kNoValue: all).
  [[nodiscard]] ValueId column_of(int run);
  ValueId owners(int run, int element = 0);
  /// Every fold's partial of each run over the rows from `at` on that `loads` loads bring, those
  /// from `limit` on masked (kNoValue: none).
  std::vector<Partials> batch(const Source& source, ValueId at, int loads, ValueId limit);
  /// The same of loads that are all there, as states, by their elements where partials do not hold
  /// otherwise.
  std::vector<Partials> batch_safely(const Source& source, ValueId at, int loads,
                                     const SourceOf& by_elements);
  std::vector<Partials> merge(const std::vector<Partials>& a, const std::vector<Partials>& b);
  /// Stores a value of the run's columns in the row of `buffer` that begins at element `row`
  /// (kNoValue: 0). Stores are of 16 bytes a lane where memory is found to be aligned or the target
  /// does not ask. `aligned`: it is, and the row goes on to the end of the lane's vector that its
  /// last column is in.
  void store(int buffer, ValueId row, int run, ValueId value, bool aligned);

 private:
  using Leaf = std::function<std::vector<Partials>(int)>;
  /// Adds a batch to states; its loads one by one where they come by elements.
  Builder::Values add_batch(const Builder::Values& carried, const Source& source, ValueId at,
                            int loads, ValueId limit);
  /// Fields of all runs' states, those of columns whose partials do not hold as `slow` folds them.
  using Slow = std::function<Builder::Values(Band& band, TileLowering& tile)>;
  Builder::Values mended(Builder::Values quick, const Slow& slow);
  /// Every fold's state of each run, over what rows the warp takes of those.
  Builder::Values fold_rows(const Source& source, ValueId rows);
  /// fold() of rows in phases, whose states stay in the windows' lanes (band_phases.cpp).
  Builder::Values fold_phases(const Source& source, ValueId rows);
  void open_window(const Source& source, ValueId row);
  std::vector<Partials> pick(const Source& source, ValueId row);
  Builder::Values move_to_band(Builder::Values fields);
  [[nodiscard]] ValueId reads(int run) const {
    return window_reads_.empty() ? lane_reads_ : window_reads_[static_cast<std::size_t>(run)];
  }
  /// The column of this element of the lanes' vectors, counted from the first of the run.
  ValueId lane_column(int element);
  std::vector<Partials> identities();
  std::vector<Partials> merge_tree(int from, int count, const Leaf& leaf);
  std::vector<Partials> merge_pairs(int count, const Leaf& leaf);
  std::vector<Partials> merge_warps(std::vector<Partials> mine);
  void hand_over(const Builder::Values& fields, ValueId slot);
  Builder::Values take_over(const Builder::Values& like, ValueId slot);
  Builder::Values flatten(std::vector<Partials> runs);
  std::vector<Partials> unflatten(const Builder::Values& fields);
  ValueId wide(ValueId value) { return b_.convert(value, DType::i64); }

  Builder& b_;
  TileLowering& tile_;
  Shape shape_;
  std::int64_t columns_ = 0;
  ValueId count_ = kNoValue;
  ValueId first_ = kNoValue;  // the band's first column
  ValueId skip_ = kNoValue;   // columns of the band that are the band's before it; kNoValue: none
  ValueId lane_reads_ = kNoValue;
  // Phases: whether the last band has fewer columns. Of this warp: where its window begins, how
  // many columns before the band, and which lanes of each run read (empty: all).
  bool ragged_ = false;
  bool one_by_one_ = false;  // loads of a batch, in a loop
  ValueId window_ = kNoValue, ahead_of_band_ = kNoValue;
  std::vector<ValueId> window_reads_;
};

}  // namespace chainfold::codegen
