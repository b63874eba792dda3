// lower_rows: groups of `lanes_per_segment` lanes own whole segments; a warp handles `rows` times
// 32 / lanes_per_segment consecutive segments and stores their results side by side.
//
// Rows are merged in pairs while lanes are merged (pair_rows), so a group's lane u ends up with row
// u and the exchanges are shared: R rows over G lanes cost R - 1 exchanges and log2(G / R) more,
// not R * log2(G).
#include <algorithm>
#include <functional>

#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/lower.hpp"
#include "chainfold/codegen/lower_tile.hpp"

namespace chainfold::codegen {

namespace {

class RowsLowering {
 public:
  RowsLowering(Builder& builder, const Graph& graph, const Plan& plan, int segments_param,
               ValueId first)
      : b_(builder),
        graph_(graph),
        plan_(plan),
        tile_(builder, graph, plan),
        lanes_(plan.lanes_per_segment),
        per_row_(kWarpWidth / plan.lanes_per_segment),
        segments_(builder.param(segments_param)),
        first_(first) {}

  /// The whole warp tile; `masked` where its last segments may not exist.
  void lower_tile(bool masked) {
    rows_.assign(static_cast<std::size_t>(plan_.rows), {});
    if (plan_.load_rows_first) {
      for (int u = 0; u < plan_.rows; ++u) load_row(u, masked);
    }
    const int span = std::min(plan_.rows, lanes_);
    for (int group = 0; group * span < plan_.rows; ++group) {
      Partials merged = merge_rows(group * span, span, masked);
      merged = tile_.reduce_lanes(std::move(merged), span, lanes_);
      store_outputs(merged, group * span * per_row_, span * per_row_, masked);
    }
  }

 private:
  [[nodiscard]] bool in_one_batch() const {
    return plan_.segment <=
               static_cast<std::int64_t>(kWarpWidth) * plan_.load_width * plan_.depth &&
           !plan_.edges;
  }
  ValueId first_segment(int u) {
    return b_.add(first_, b_.i64(static_cast<std::int64_t>(u) * per_row_));
  }

  /// The first element of row u. A row of which nothing exists points at the last segment instead:
  /// its lanes are all masked, but some processors are slow to mask what lies in no page.
  ValueId row_base(int u, bool masked) {
    ValueId segment = first_segment(u);
    if (masked) {
      const ValueId last = b_.sub(segments_, b_.i64(1));
      segment = b_.min(segment, last);
    }
    return b_.mul(segment, b_.i64(plan_.segment));
  }

  /// Lanes of row u whose segment exists.
  ValueId row_mask(int u, bool masked) {
    if (!masked) return kNoValue;
    const ValueId left = b_.sub(segments_, first_segment(u));
    const ValueId group = b_.convert(b_.compute(Op::div, {b_.lane(), b_.i32(lanes_)}), DType::i64);
    return b_.lt(group, left);
  }

  void load_row(int u, bool masked) {
    if (!in_one_batch()) return;
    std::vector<Loaded>& row = rows_[static_cast<std::size_t>(u)];
    const ValueId base = row_base(u, masked);
    const int width = plan_.load_width;
    ValueId mask = row_mask(u, masked);
    if (lanes_ == kWarpWidth) {
      const std::int64_t step = static_cast<std::int64_t>(kWarpWidth) * width;
      const auto tiles = static_cast<int>((plan_.segment + step - 1) / step);
      const bool ragged = plan_.segment % step != 0;
      const ValueId limit = ragged ? b_.add(base, b_.i64(plan_.segment)) : kNoValue;
      row = tile_.load_batch(base, tiles, limit, mask, base);
      return;
    }
    Address at{.base = base, .group = lanes_, .stride = plan_.segment};
    if (plan_.segment == static_cast<std::int64_t>(lanes_) * width) {
      at = {.base = base};  // groups follow each other without a gap: one run
    } else {
      const ValueId within =
          b_.compute(Op::mul, {b_.compute(Op::rem, {b_.lane(), b_.i32(lanes_)}), b_.i32(width)});
      mask = b_.both(mask, b_.lt(within, b_.i32(static_cast<std::int32_t>(plan_.segment))));
    }
    const ValueId position =
        tile_.uses_index() ? tile_.positions(b_.i64(0), lanes_, width) : kNoValue;
    row = {tile_.load(at, width, mask, position)};
  }

  Partials fold_row(int u, bool masked) {
    Partials partials;
    if (in_one_batch()) {
      if (!plan_.load_rows_first) load_row(u, masked);
      partials = tile_.fold_batch(rows_[static_cast<std::size_t>(u)]);
    } else {
      const ValueId base = row_base(u, masked);
      partials =
          tile_.fold_range(base, b_.i64(plan_.segment), base, row_mask(u, masked), b_.i32(0), 1);
    }
    return plan_.combine_states ? tile_.lift(std::move(partials))
                                : tile_.collapse(std::move(partials));
  }

  Partials merge_rows(int u, int span, bool masked) {
    if (span == 1) return fold_row(u, masked);
    const Partials low = merge_rows(u, span / 2, masked),
                   high = merge_rows(u + span / 2, span / 2, masked);
    return tile_.pair_rows(low, high, span / 2);
  }

  /// Lane k * lanes + u holds row u's k-th segment; output p = u * per_row + k goes to lane p.
  void store_outputs(const Partials& merged, int offset, int count, bool masked) {
    std::vector<std::uint8_t> source(kWarpWidth);
    for (int p = 0; p < kWarpWidth; ++p) {
      source[static_cast<std::size_t>(p)] =
          static_cast<std::uint8_t>(p < count ? (p % per_row_) * lanes_ + p / per_row_ : p);
    }
    const ValueId base = b_.add(first_, b_.i64(offset));
    ValueId mask = kNoValue;
    if (count < kWarpWidth) mask = b_.compute(Op::lt, {b_.lane(), b_.i32(count)});
    if (masked)
      mask = b_.both(
          mask, b_.compute(Op::lt, {b_.convert(b_.lane(), DType::i64), b_.sub(segments_, base)}));
    const std::vector<ValueId> outputs = tile_.finish(merged, b_.i64(plan_.segment));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      ValueId value = outputs[i];
      if (b_.type(value).shape == Shape::lane) value = b_.permute(value, source);
      b_.store(static_cast<int>(graph_.inputs.size() + i), {base}, value, mask);
    }
  }

  Builder& b_;
  const Graph& graph_;
  const Plan& plan_;
  TileLowering tile_;
  int lanes_, per_row_;
  ValueId segments_, first_;
  std::vector<std::vector<Loaded>> rows_;
};

}  // namespace

Program lower_rows(const Graph& graph, const Plan& plan, const Target&) {
  Program program;
  program.name = "fold_rows";
  declare_graph(program, graph, plan);
  const int segments = add_param(program, "segments", DType::i64, ParamRole::segments);
  const std::int64_t per_block = static_cast<std::int64_t>(plan.warps) * plan.segments_per_warp();
  program.launches.push_back({.name = "fold_rows",
                              .grid = ceil_div(SizeExpr::param(segments, "segments"), per_block),
                              .warps = plan.warps});
  Builder b(program);
  const ValueId tile = b.compute(Op::add, {b.compute(Op::mul, {b.block(), b.i64(plan.warps)}),
                                           b.convert(b.warp(), DType::i64)});
  const ValueId first = b.mul(tile, b.i64(plan.segments_per_warp()));
  const ValueId behind = b.add(first, b.i64(plan.segments_per_warp()));
  const ValueId whole = b.compute(Op::le, {behind, b.param(segments)});
  RowsLowering rows(b, graph, plan, segments, first);
  auto body = [&](bool masked) {
    return [&rows, masked] {
      rows.lower_tile(masked);
      return Builder::Values{};
    };
  };
  b.branch(whole, body(false), body(true));
  return program;
}

}  // namespace chainfold::codegen
