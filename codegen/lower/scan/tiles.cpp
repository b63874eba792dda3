#include "chainfold/codegen/lower/scan/tiles.hpp"

#include <algorithm>
#include <utility>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/scan/tile.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/scan.hpp"

namespace chainfold::codegen {

namespace {

/// Rows that a trip loads before it uses the first, and that one question about heads serves. They
/// are enough to have the others' work beside their exchanges, and few enough for registers. Rows
/// with and without heads have code of their own, so they are also few enough for an instruction
/// cache (docs/tuned-values.md#scans-rows).
int rows_at_once(int width) {
  constexpr int kElements = 8, kLeast = 2, kMost = 4;
  return std::clamp(kElements / width, kLeast, kMost);
}

}  // namespace

ScanTiles::ScanTiles(Builder& builder, const Graph& graph, const Plan& plan,
                     const TileParams& params)
    : b_(builder),
      graph_(graph),
      plan_(plan),
      params_(params),
      scan_(builder, graph, plan, plan.scan.heads ? plan.segment : 0) {}

ValueId ScanTiles::extent() {
  return plan_.segment > 0 ? b_.i64(plan_.segment) : b_.param(params_.elements);
}

ValueId ScanTiles::elements() {
  return plan_.scan.heads ? b_.mul(b_.param(params_.segments), extent()) : extent();
}

ValueId ScanTiles::counts() { return plan_.scan.heads ? b_.i64(1) : b_.param(params_.segments); }

ValueId ScanTiles::tiles() {
  if (begins_in_loads(plan_)) return b_.i64(tiles_of_segment(plan_));
  const ValueId tile = b_.i64(plan_.scan.tile);
  const ValueId count = b_.div(b_.add(elements(), b_.sub(tile, b_.i64(1))), tile);
  return plan_.segment > 0 ? count : b_.compute(Op::max, {count, b_.i64(1)});
}

void ScanTiles::place(ValueId number) {
  const ValueId all = tiles();
  const bool counted_once = plan_.is_whole() || plan_.scan.heads;
  if (plan_.scan.interleaved > 0) {
    place_across(number, all);
  } else {
    segment_ = counted_once ? b_.i64(0) : b_.div(number, all);
    index_ = counted_once ? number : b_.rem(number, all);
  }
  const ValueId tile =
      scan_.reverse() ? b_.sub(b_.sub(all, b_.i64(1)), index_) : index_;  // in memory
  const std::int64_t of_tile = plan_.scan.tile, run = of_tile / plan_.warps;
  const ValueId tile_at = b_.mul(tile, b_.i64(of_tile));
  ValueId left = b_.sub(elements(), tile_at), lead = kNoValue;
  if (begins_in_loads(plan_)) {
    const ValueId segment_at = b_.mul(segment_, extent());
    lead = b_.compute(Op::bit_and, {segment_at, b_.i64(plan_.load_width - 1)});
    left = b_.add(left, lead);
  }
  full_ = b_.compute(Op::ge, {left, b_.i64(of_tile)});
  const ValueId mine = b_.mul(b_.convert(b_.warp(), DType::i64), b_.i64(run));
  at_ = b_.add(tile_at, mine);
  if (lead != kNoValue) {
    full_ = b_.both(full_, b_.compute(Op::ge, {tile_at, lead}));
    before_ = b_.convert(b_.compute(Op::max, {b_.i64(0), b_.sub(lead, at_)}), DType::i32);
    at_ = b_.sub(at_, lead);
  }
  begin_ = b_.add(b_.mul(segment_, extent()), at_);
  count_ = b_.compute(Op::max, {b_.i64(0), b_.min(b_.i64(run), b_.sub(left, mine))});
  if (plan_.scan.heads) place_heads(tile_at, all);
}

void ScanTiles::place_across(ValueId number, ValueId all) {
  const ValueId most = b_.i64(plan_.scan.interleaved), of_group = b_.mul(most, all);
  const ValueId first = b_.mul(b_.div(number, of_group), most);
  side_ = b_.min(most, b_.sub(counts(), first));
  // How many segments the last group has is known at launch: a division of 32 bits is short.
  const ValueId at = b_.convert(b_.rem(number, of_group), DType::i32);
  const ValueId side = b_.convert(side_, DType::i32), index = b_.div(at, side);
  segment_ = b_.add(first, b_.convert(b_.sub(at, b_.mul(index, side)), DType::i64));
  index_ = b_.convert(index, DType::i64);
}

void ScanTiles::place_heads(ValueId tile_at, ValueId all) {
  const ValueId size = extent(), tile = b_.i64(plan_.scan.tile), one = b_.i64(1);
  first_ = b_.div(tile_at, size);
  const ValueId begins = b_.mul(first_, size);
  const ValueId last = b_.div(b_.add(tile_at, b_.sub(tile, one)), size);
  of_one_ = b_.compute(Op::eq, {first_, last});
  if (scan_.reverse()) {  // from the end of the segment of the tile's last element
    const ValueId end = b_.min(b_.mul(b_.add(last, one), size), elements());
    origin_ = b_.sub(b_.sub(all, one), b_.div(b_.sub(end, one), tile));
  } else {
    origin_ = b_.div(begins, tile);
  }
  const auto run = static_cast<std::int32_t>(scan_.elements());
  const ValueId block = b_.convert(b_.sub(tile_at, begins), DType::i32);
  scan_.begin_at(b_.add(block, b_.mul(b_.warp(), b_.i32(run))), block);
}

Partials ScanTiles::join(Partials before, const Partials& own) {
  if (plan_.scan.heads) {
    for (std::size_t f = 0; f < before.size(); ++f)
      before[f] = scan_.tile().keep_where(f, std::move(before[f]), b_.splat(of_one_));
  }
  return scan_.merge(before, own);
}

ValueId ScanTiles::count_from(Span span) {
  const bool whole = plan_.segment > 0 && plan_.segment % plan_.scan.tile == 0;
  const bool all = plan_.scan.ragged ? !of_masked_ : plan_.scan.heads || whole;
  return all ? kNoValue : b_.sub(count_, b_.i64(elements_of(span.first)));
}

void ScanTiles::start_copies() {
  ValueId count = count_from(staged());
  if (plan_.scan.heads) count = b_.sub(count_, b_.i64(elements_of(staged().first)));
  if (count != kNoValue) {
    const ValueId most = b_.i64(elements_of(staged_));
    count = b_.compute(Op::max, {b_.i64(0), b_.min(count, most)});
  }
  ring_->start(b_.i64(0), begin_of(staged()), count);
}

int ScanTiles::together(int rows) const {
  return plan_.scan.heads ? std::min(rows, rows_at_once(plan_.load_width)) : rows;
}

std::vector<Loaded> ScanTiles::kept_rows(int first, int rows) const {
  return {rows_.begin() + first, rows_.begin() + first + rows};
}

std::vector<Loaded> ScanTiles::load_staged(ValueId offset, ValueId count, ValueId place, int rows) {
  std::vector<Loaded> loaded = scan_.load(offset, count, place, rows);
  if (ends_anywhere()) scan_.keep_existing(loaded, count);
  return loaded;
}

std::vector<Loaded> ScanTiles::load_kept() {
  const ValueId begin = begin_of(kept());
  if (ends_anywhere())
    return scan_.load_ending(begin, count_from(kept()), place_of(kept()), kept().rows, before_);
  auto whole = [&] { return scan_.load(begin, count_from(kept()), place_of(kept()), kept().rows); };
  if (!plan_.scan.heads) return whole();
  // The memory ends anywhere in the last tile's rows; what is behind it belongs to no segment.
  std::vector<Loaded> rows;
  auto inputs = [&](std::vector<Loaded> loaded) {
    Builder::Values values;
    for (const Loaded& row : loaded) {
      for (const ValueId input : row.inputs) {
        if (input != kNoValue) values.push_back(input);
      }
    }
    rows = std::move(loaded);
    return values;
  };
  const Builder::Values values = b_.branch(
      full_, [&] { return inputs(whole()); },
      [&] {
        const ValueId count = b_.sub(count_, b_.i64(elements_of(kept().first)));
        std::vector<Loaded> ending = scan_.load_ending(begin, count, kNoValue, kept().rows);
        for (Loaded& row : ending) row.forget_what_exists();
        return inputs(std::move(ending));
      });
  std::size_t next = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (ValueId& input : rows[r].inputs) {
      if (input != kNoValue) input = values[next++];
    }
    rows[r].position = scan_.row_position(place_of(kept()), static_cast<int>(r));
  }
  return rows;
}

void ScanTiles::fold_loaded(const std::vector<Loaded>& rows, int first, RowTotals& folded) {
  if (!plan_.scan.heads) {
    for (const Loaded& row : rows) folded.add(scan_.tile().fold_tile(row));
    if (scan_.tile().is_quick()) serves_ = b_.both(serves_, scan_.tile().quick_serves(rows));
    return;
  }
  for (const Partials& open : scan_.fold_open_rows(rows, first, scan_.reverse())) folded.add(open);
}

Partials ScanTiles::fold_rows() {
  if (ring_ != nullptr) {
    scan_.tile().read_inputs();
    start_copies();
  }
  // Behind ScanRing::read loads are those of the stage.
  rows_.clear();
  if (kept().rows > 0) rows_ = load_kept();
  RowTotals folded(scan_.tile()), of_stage(scan_.tile());
  const int step = plan_.scan.heads ? together(plan_.depth) : 1;
  for (int r = 0; r < kept().rows; r += step)
    fold_loaded(kept_rows(r, std::min(step, kept().rows - r)), kept().first + r, folded);
  if (ring_ != nullptr) {
    ring_->wait(b_.i64(0));
    ring_->read(b_.i64(0), begin_of(staged()));
  }
  for (int r = 0; r < staged_; r += step) {
    const Span rows{staged().first + r, std::min(step, staged_ - r)};
    fold_loaded(load_staged(b_.i64(elements_of(r)), count_from(rows), place_of(rows), rows.rows),
                rows.first, of_stage);
  }
  RowTotals& earlier = scan_.reverse() ? of_stage : folded;
  earlier.append(std::move(scan_.reverse() ? folded : of_stage));
  return scan_.total(std::move(earlier));
}

Builder::Values ScanTiles::of_masked(const std::function<Builder::Values()>& rows) {
  of_masked_ = true;
  Builder::Values values = rows();
  of_masked_ = false;
  return values;
}

bool ScanTiles::has_quick_rows() const {
  // Looking ahead, rows are folded long before they are scanned. No range goes both ways.
  return plan_.scan.in_registers && plan_.strategy != Strategy::look_ahead && !plan_.scan.heads &&
         !blocked_ && !scans_both_ways(graph_) && has_quick_folds(graph_);
}

Partials ScanTiles::fold_range() {
  const Run run = whole_run();
  return scan_.total_of_range(run.begin, run.count, run.place);
}

ScanTiles::Run ScanTiles::whole_run() {
  if (before_ == kNoValue) return {begin_, count_, at_};
  const ValueId before = b_.convert(before_, DType::i64);
  const ValueId left = b_.compute(Op::max, {b_.i64(0), b_.sub(count_, before)});
  return {b_.add(begin_, before), left, b_.add(at_, before)};
}

Partials ScanTiles::total() {
  if (!plan_.scan.in_registers) return fold_range();
  // By quick folds, and whether these serve.
  auto folded_rows = [&] {
    if (!has_quick_rows()) return fold_rows();
    serves_ = kNoValue;
    return scan_.tile().quick_totals(serves_, [&] { return fold_rows(); });
  };
  auto whole = [&] { return blocked_ ? fold_blocked() : folded_rows(); };
  TileLowering& tile = scan_.tile();
  // Where quick folds do not serve, once more, as a range.
  auto holds = [&](const Partials& totals) {
    if (!has_quick_rows()) return totals;
    return tile.chosen_totals(serves_, totals, [&] { return fold_range(); });
  };
  if (!plan_.scan.ragged) return holds(whole());
  // Values of a branch end with it: the rows are handed out one input after the other.
  auto values_of = [&](const Partials& folded) {
    Builder::Values values = tile.flatten(folded);
    for (const Loaded& row : rows_) {
      for (const ValueId input : row.inputs) {
        if (input != kNoValue) values.push_back(input);
      }
    }
    if (has_quick_rows()) values.push_back(serves_);
    values.insert(values.end(), before_lanes_.begin(), before_lanes_.end());
    return values;
  };
  auto masked = [&] {
    const Partials folded = folded_rows();
    if (blocked_) before_lanes_ = blocked_->nothing_before();
    return values_of(folded);
  };
  const Builder::Values both =
      b_.branch(full_, [&] { return values_of(whole()); }, [&] { return of_masked(masked); });
  std::size_t fields = 0;
  for (const Fold& fold : graph_.folds) fields += fold.state.size();
  std::size_t next = fields;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (ValueId& input : rows_[r].inputs) {
      if (input != kNoValue) input = both[next++];
    }
    rows_[r].position = scan_.row_position(place_of(kept()), static_cast<int>(r));
    rows_[r].forget_what_exists();
  }
  if (has_quick_rows()) serves_ = both[next++];
  before_lanes_.assign(both.begin() + static_cast<std::ptrdiff_t>(next), both.end());
  return holds(
      tile.unflatten({both.begin(), both.begin() + static_cast<std::ptrdiff_t>(fields)}, true));
}

Partials ScanTiles::fold_blocked() {
  BlockedRun::Folded folded = blocked_->fold(blocked(kept()), blocked(staged()));
  rows_.clear();
  for (const ValueId load : folded.kept)
    rows_.push_back({.inputs = {load}, .width = plan_.load_width});
  before_lanes_ = std::move(folded.before);
  return std::move(folded.all);
}

void ScanTiles::scan_blocked(const Partials& carry) {
  BlockedRun::Folded folded{.before = before_lanes_};
  for (const Loaded& row : rows_) folded.kept.push_back(row.inputs[0]);
  blocked_->scan(folded, blocked(kept()), blocked(staged()), carry, extent());
}

Partials ScanTiles::carried_in() {
  if (params_.carry_in < 0) return scan_.tile().identities();
  const ValueId there = b_.splat(b_.compute(Op::ne, {b_.param(params_.has_carry_in), b_.i64(0)}));
  return StateArrays(StateArrays::Memory::global, params_.carry_in)
      .load_one(b_, scan_.tile(), b_.i64(0), there);
}

void ScanTiles::carry_out(const Partials& states) {
  if (params_.carry_out < 0) return;
  const ValueId wanted = b_.compute(Op::ne, {b_.param(params_.has_carry_out), b_.i64(0)});
  const ValueId mask = b_.both(b_.compute(Op::eq, {b_.lane(), b_.i32(0)}), b_.splat(wanted));
  StateArrays(StateArrays::Memory::global, params_.carry_out)
      .store(b_, scan_.tile(), {b_.i64(0)}, states, mask);
}

void ScanTiles::store_folds(const std::function<Partials()>& folds) {
  if (plan_.scan.heads) return;  // they were stored where segments end
  const bool has_folds =
      std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                  [&](NodeId output) { return graph_.node(output).level == Level::segment; });
  if (!has_folds && params_.carry_out < 0) return;
  const ValueId last = b_.compute(Op::eq, {index_, b_.sub(tiles(), b_.i64(1))});
  b_.branch(
      last,
      [&] {
        on_first_warp(b_, plan_.warps, [&] {
          const Partials states = folds();
          scan_.store_folds(states, segment_, extent());
          carry_out(states);
        });
        return Builder::Values{};
      },
      [] { return Builder::Values{}; });
}

void ScanTiles::scan_staged(const Partials& carry, const std::vector<ValueId>& folded) {
  TileLowering& tile = scan_.tile();
  const Span span = staged();
  if (ring_ != nullptr) ring_->read(b_.i64(0), begin_of(span));  // what is above is a branch's
  const int group = std::min(rows_at_once(plan_.load_width), staged_), groups = staged_ / group,
            rest = staged_ % group;
  const ValueId count = count_from(span), place = place_of(span);
  auto scan_some = [&](ValueId offset, int some, const Builder::Values& states) {
    const std::vector<Loaded> rows = load_staged(
        offset, count == kNoValue ? kNoValue : b_.sub(count, offset), b_.add(place, offset), some);
    const Carry behind = scan_loaded(rows, span, offset, tile.unflatten(states, true), folded);
    return tile.flatten(tile.lift(ScanTile::states_of(behind)));
  };
  auto scan_group = [&](ValueId number, const Builder::Values& states) {
    const ValueId g = scan_.reverse() ? b_.sub(b_.i64(groups - 1), number) : number;
    return scan_some(b_.mul(g, b_.i64(elements_of(group))), group, states);
  };
  // Rows that make no group lie behind all that do.
  Builder::Values states = tile.flatten(carry);
  const ValueId zero = b_.i64(0), behind = b_.i64(elements_of(groups * group));
  if (rest > 0 && scan_.reverse()) states = scan_some(behind, rest, states);
  states = groups == 1 ? scan_group(zero, states)
                       : b_.loop(zero, b_.i64(groups), b_.i64(1), states, scan_group);
  if (rest > 0 && !scan_.reverse()) scan_some(behind, rest, states);
}

Carry ScanTiles::scan_loaded(const std::vector<Loaded>& rows, Span span, ValueId offset,
                             const Partials& carry, const std::vector<ValueId>& folded) {
  const ValueId begin = b_.add(begin_of(span), offset);
  if (!plan_.scan.heads) {
    if (!ends_anywhere()) return scan_.scan(rows, begin, scan_.carry_of(carry), extent(), folded);
    // What is behind the end comes last in a forward scan, where nothing asks for it.
    const bool backward = scan_.reverse() || scans_both_ways(graph_);
    std::vector<Loaded> scanned = rows;
    for (std::size_t r = before_ == kNoValue ? 0 : 1; r < scanned.size(); ++r) {
      if (!backward) scanned[r].valid = kNoValue;
    }
    const ValueId count = b_.sub(count_from(span), offset);
    return scan_.scan(scanned, begin, scan_.carry_of(carry), extent(), folded, count, before_);
  }
  const ValueId slot = b_.add(b_.i64(elements_of(span.first)), offset);
  scan_.go_to(b_.convert(slot, DType::i32));
  return scan_.scan_together(rows, begin, b_.sub(count_, slot), first_, carry);
}

void ScanTiles::scan_rows(Partials carry, const std::vector<ValueId>& folded) {
  const Span span = kept();
  const int step = together(span.rows);
  for (int r = 0; r < span.rows; r += step) {
    const int some = std::min(step, span.rows - r);
    const int first = scan_.reverse() ? span.rows - r - some : r;
    const Carry behind =
        scan_loaded(kept_rows(first, some), {span.first + first, some}, b_.i64(0), carry, folded);
    carry = scan_.tile().lift(ScanTile::states_of(behind));
  }
  if (staged_ > 0) scan_staged(carry, folded);
}

void ScanTiles::scan(const Partials& carry, const std::vector<ValueId>& folded) {
  auto range = [&] {
    const Run run = whole_run();
    scan_.scan_range(run.begin, run.count, run.place, carry, extent(), folded);
  };
  auto rows_behind = [&](const Partials& before) {
    if (blocked_ && !of_masked_) {
      scan_blocked(before);
    } else {
      scan_rows(before, folded);
    }
    return Builder::Values{};
  };
  // The first or last rows of a segment, whose masks ended with the branch that loaded them.
  auto last_rows_behind = [&](const Partials& before) {
    const ValueId count = count_from(kept());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (ends_anywhere()) {
        scan_.mark_existing(rows_[r], static_cast<int>(r), count, before_);
      } else {
        rows_[r].mask = scan_.row_mask(count, static_cast<int>(r));
      }
    }
    return rows_behind(before);
  };
  auto rows = [&](const Partials& before) {
    if (!plan_.scan.ragged) {
      rows_behind(before);
    } else {
      b_.branch(
          full_, [&] { return rows_behind(before); },
          [&] { return of_masked([&] { return last_rows_behind(before); }); });
    }
  };
  if (!plan_.scan.in_registers) {
    range();
  } else if (!has_quick_rows()) {
    rows(carry);
  } else {
    scan_.tile().either(
        serves_, scan_.carry_of(carry),
        [&](const Carry& narrow) {
          rows(ScanTile::states_of(narrow));
          return TileLowering::Scanned{};
        },
        nullptr,
        [&](const Carry&) {
          range();
          return TileLowering::Scanned{};
        });
  }
}

}  // namespace chainfold::codegen
