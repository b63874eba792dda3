// RowTile: the work of one warp on `segments_per_warp` consecutive segments. It is the same whether
// their elements are loaded from the inputs or from shared memory, and wherever the results go.
//
// Rows are merged in pairs while lanes are merged (pair_rows, RowMerges). So each lane of a group
// ends up with another row and exchanges are shared. R rows over G lanes cost R - 1 exchanges and
// log2(G / R) more, not R * log2(G).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

class RowTile {
 public:
  /// Takes one output's values of `count` segments. Lane l holds that of the tile's segment `offset
  /// + l` (uniform i64). Lanes where `mask` is false hold none.
  using Sink = std::function<void(std::size_t output, ValueId offset, ValueId value, ValueId mask)>;

  RowTile(Builder& builder, const Graph& graph, const Plan& plan);

  /// Segments from `first` on, of `segments` that exist (i64; kNoValue: all of the tile do).
  void lower_tile(ValueId first, ValueId segments, const Sink& sink);
  /// Loads come from shared arrays, one an input. The tile's first element lies at bases[i]. Where
  /// segments straddle loads, it lies `before` elements (i64) behind that.
  void read_stage(std::vector<ValueId> bases, ValueId before) {
    tile_.read_stage(std::move(bases));
    before_ = before;
  }
  /// Where the tile's elements lie in the inputs, which a stage does not tell. `first_segment`
  /// gives the tile's first segment among those of the launch, of which there are `segments` (i64).
  void lies_at(std::function<ValueId()> first_segment, ValueId segments) {
    input_segment_ = std::move(first_segment);
    input_segments_ = segments;
  }
  [[nodiscard]] const TileLowering& tile() const { return tile_; }

 private:
  [[nodiscard]] bool in_one_batch() const;
  [[nodiscard]] bool masked() const { return segments_ != kNoValue; }
  ValueId first_segment(int u);
  ValueId row_base(int u);
  ValueId row_mask(int u);
  std::vector<Loaded> load_row(int u, int from, int loads);
  std::vector<Loaded> load_straddled(int u, int from, int loads);
  std::vector<Loaded> load_turned(ValueId offset, ValueId head, int from, int loads);
  [[nodiscard]] static bool turns_words(const Graph& graph, const Plan& plan);
  Partials fold_row(int u);
  [[nodiscard]] bool is_at_once() const;
  Partials fold_in_turns(int u);
  Partials merge_rows(int u, int merges);
  void put_outputs(const Partials& merged, int offset, const Sink& sink);
  /// Folds those of the `count` segments from `offset` on once more, by their elements, whose lanes
  /// are `wanted`, and hands on what becomes of them.
  void put_by_elements(ValueId wanted, int offset, int count, const Sink& sink);

  Builder& b_;
  const Plan& plan_;
  TileLowering tile_;
  int lanes_, per_row_, loads_;
  int span_;  // rows that are merged to one value
  RowMerges merges_;
  int row_bytes_ = 0;  // of a lane
  ValueId first_ = kNoValue, segments_ = kNoValue, before_ = kNoValue;
  std::vector<std::vector<Loaded>> rows_;
  std::function<ValueId()> input_segment_{};  // none: first_
  ValueId input_segments_ = kNoValue;
};

}  // namespace chainfold::codegen
