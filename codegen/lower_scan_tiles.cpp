#include "chainfold/codegen/lower_scan_tiles.hpp"

#include <algorithm>
#include <utility>

namespace chainfold::codegen {

SizeExpr TileParams::all() const { return segment_count * tiles; }

TileParams declare_tiles(Program& program, const Plan& plan) {
  TileParams params;
  params.elements = add_param(program, "elements", DType::i64, ParamRole::elements);
  params.segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  params.segment_count = SizeExpr::param(params.segments, "segments");
  const std::int64_t tile = plan.tile;
  // Of no elements there is a tile as well: it stores what has a value a segment.
  params.tiles = plan.segment > 0
                     ? SizeExpr((plan.segment + tile - 1) / tile)
                     : max(1, ceil_div(SizeExpr::param(params.elements, "elements"), tile));
  return params;
}

ScanTiles::ScanTiles(Builder& builder, Program&, const Graph& graph, const Plan& plan,
                     const TileParams& params)
    : b_(builder), graph_(graph), plan_(plan), params_(params), scan_(builder, graph, plan, 0) {}

ValueId ScanTiles::extent() {
  return plan_.segment > 0 ? b_.i64(plan_.segment) : b_.param(params_.elements);
}

ValueId ScanTiles::tiles() {
  const ValueId tile = b_.i64(plan_.tile), one = b_.i64(1);
  const ValueId tiles = b_.div(b_.add(extent(), b_.sub(tile, one)), tile);
  return plan_.segment > 0 ? tiles : b_.compute(Op::max, {one, tiles});
}

bool ScanTiles::ragged() const { return plan_.segment == 0 && plan_.load_width > 1; }

void ScanTiles::place(ValueId number) {
  const ValueId all = tiles();
  segment_ = plan_.segment > 0 ? b_.div(number, all) : b_.i64(0);
  index_ = plan_.segment > 0 ? b_.rem(number, all) : number;
  const ValueId tile =
      scan_.reverse() ? b_.sub(b_.sub(all, b_.i64(1)), index_) : index_;  // in memory
  const std::int64_t elements = plan_.tile, run = elements / plan_.warps;
  const ValueId tile_at = b_.mul(tile, b_.i64(elements));
  const ValueId left = b_.sub(extent(), tile_at);
  full_ = b_.compute(Op::ge, {left, b_.i64(elements)});
  const ValueId mine = b_.mul(b_.convert(b_.warp(), DType::i64), b_.i64(run));
  at_ = b_.add(tile_at, mine);
  begin_ = b_.add(b_.mul(segment_, extent()), at_);
  count_ = b_.compute(Op::max, {b_.i64(0), b_.min(b_.i64(run), b_.sub(left, mine))});
}

Partials ScanTiles::total() {
  if (!plan_.in_registers) return scan_.total_of_range(begin_, count_, at_);
  if (!ragged()) {
    const bool whole = plan_.segment > 0 && plan_.segment % plan_.tile == 0;
    rows_ = scan_.load(begin_, whole ? kNoValue : count_, at_);
    return scan_.total(rows_);
  }
  // Values of a branch end with it: the rows are handed out one input after the other.
  const Builder::Values both = b_.branch(
      full_,
      [&] {
        rows_ = scan_.load(begin_, kNoValue, at_);
        Builder::Values values = scan_.tile().flatten(scan_.total(rows_));
        for (const Loaded& row : rows_) {
          for (const ValueId input : row.inputs) {
            if (input != kNoValue) values.push_back(input);
          }
        }
        return values;
      },
      [&] {
        Builder::Values values = scan_.tile().flatten(scan_.total_of_range(begin_, count_, at_));
        for (const Loaded& row : rows_) {
          for (const ValueId input : row.inputs) {
            if (input == kNoValue) continue;
            const Type& type = b_.type(input);
            values.push_back(b_.widen(b_.constant(type.elem, 0), type.width));
          }
        }
        return values;
      });
  std::size_t fields = 0;
  for (const Fold& fold : graph_.folds) fields += fold.state.size();
  std::size_t next = fields;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (ValueId& input : rows_[r].inputs) {
      if (input != kNoValue) input = both[next++];
    }
    rows_[r].position = scan_.row_position(at_, static_cast<int>(r));
  }
  return scan_.tile().unflatten({both.begin(), both.begin() + static_cast<std::ptrdiff_t>(fields)},
                                true);
}

void ScanTiles::store_folds(const std::function<Partials()>& folds) {
  const bool has_folds =
      std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                  [&](NodeId output) { return graph_.node(output).level == Level::segment; });
  if (!has_folds) return;
  const ValueId last = b_.compute(Op::eq, {index_, b_.sub(tiles(), b_.i64(1))});
  b_.branch(
      last,
      [&] {
        on_first_warp(b_, plan_.warps, [&] { scan_.store_folds(folds(), segment_, extent()); });
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
}

void ScanTiles::scan(const Partials& carry, const std::vector<ValueId>& folded) {
  auto range = [&] {
    scan_.scan_range(begin_, count_, at_, carry, extent(), folded);
    return Builder::Values{};
  };
  auto rows = [&] {
    scan_.scan(rows_, begin_, scan_.carry_of(carry), extent(), folded);
    return Builder::Values{};
  };
  if (!plan_.in_registers) {
    range();
  } else if (!ragged()) {
    rows();
  } else {
    b_.branch(full_, rows, range);
  }
}

}  // namespace chainfold::codegen
