#include "chainfold/codegen/lower/fold/path_tile.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/lower/tile/lane_scans.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"

namespace chainfold::codegen {

namespace {
constexpr int kFlagLoad = 16;  // bytes of flags that a lane clears at once
/// Flags of elements: a segment begins there, or what is of no segment or of another tile.
constexpr int kHead = 1, kGap = 2;
}  // namespace

PathTile::PathTile(Builder& builder, Program& program, TileLowering& tile, const Graph& graph,
                   const Plan& plan, SegmentBounds& bounds, bool pairs, ValueId elements,
                   ValueId segments, bool scans, bool mirrored)
    : b_(builder),
      tile_(tile),
      graph_(graph),
      plan_(plan),
      bounds_(bounds),
      pairs_(pairs),
      mirrored_(mirrored),
      early_elements_(plan.rows == 1 && !scans && !mirrored),
      going_(builder, tile, graph, early_elements_),
      elements_(elements),
      segments_(segments),
      asks_before_(asks_before(graph)),
      asks_behind_(asks_behind(graph)),
      asks_extent_(elements_read_extent(graph)),
      asks_lengths_(segments_read_extent(graph)) {
  const int all = elements_a_row(plan) * plan.rows;
  auto& shared = program.launches.back().shared;
  flags_ = static_cast<int>(shared.size());
  constexpr int kStep = kFlagLoad * kWarpWidth;
  shared.push_back({"heads", DType::u8, (all / kStep + 1) * kStep});
  own_ = StateArrays::in_shared(program, graph, "own", all);
  before_ = StateArrays::in_shared(program, graph, "before", kWarpWidth * plan.rows);
}

PathTile::Going PathTile::fold(const Span& span, const Going& going, const Sink& ended,
                               const ElementSink& scanned) {
  scanned_ = scanned ? &scanned : nullptr;
  base_ = base_of(span.element);
  first_ = b_.sub(span.element, base_);
  behind_ = b_.sub(span.next_element, base_);
  const ValueId begin = span.near[0], end = span.near[1];
  const ValueId first_lane =
      b_.both(b_.compute(Op::eq, {b_.lane(), b_.i32(0)}), b_.lt(span.segment, near_segments_));
  goes_on_ =
      b_.any(b_.both(first_lane, b_.both(b_.lt(begin, span.element), b_.lt(span.element, end))));
  find_ahead(span);
  if (!early_elements_) return {.open = fold_ends(span, going.open, ended)};
  const ValueId is_full =
      b_.compute(Op::eq, {b_.sub(span.next_element, span.element),
                          b_.i32(static_cast<std::int32_t>(tile_items(plan_)))});
  const ValueId same = b_.compute(Op::eq, {span.segment, span.next_segment});
  return going_.unflatten(b_.branch_as_is(
      b_.both(goes_on_, b_.both(is_full, same)),
      [&] { return going_.flatten(fold_quiet(span, going)); },
      [&] { return going_.flatten(going_.from(fold_ends(span, going_.settle(going), ended))); }));
}

Partials PathTile::fold_ends(const Span& span, const Partials& open, const Sink& ended) {
  open_ = &open;
  mark_heads(span);
  fold_rows(span);
  b_.barrier();
  return hand_over(span, open, ended);
}

PathTile::Going PathTile::fold_quiet(const Span& span, const Going& going) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const std::vector<std::size_t> used = going_.used_inputs();
  std::size_t next = 2;
  std::vector<Loaded> loads;
  const ValueId place = b_.mul(b_.lane(), b_.i32(each));
  for (int i = 0; i < each; i += width) {
    Loaded load{.inputs = Builder::Values(graph_.inputs.size(), kNoValue), .width = width};
    for (const std::size_t input : used) load.inputs[input] = span.early[next++];
    Builder::Values counts, positions;
    for (int j = 0; j < width; ++j) {
      const ValueId at = b_.add(place, b_.i32(i + j));
      positions.push_back(
          b_.add(i64_of(b_.sub(at, first_)), ahead_ == kNoValue ? b_.i64(0) : ahead_));
      // The tile begins in some lane's first load, and ends in some lane's last one.
      ValueId inside = b_.splat(b_.boolean(true));
      if (i == 0) inside = b_.both(inside, b_.compute(Op::ge, {at, first_}));
      if (i + width == each) inside = b_.both(inside, b_.lt(at, behind_));
      counts.push_back(inside);
    }
    if (width > 1 && (i == 0 || i + width == each)) load.valid = b_.concat(std::move(counts));
    if (tile_.uses_index()) load.position = b_.concat(std::move(positions));
    loads.push_back(std::move(load));
  }
  Going all = going;
  going_.add(loads, all);
  return all;
}

/// Flags are bytes of their own, so that lanes may set several at once.
void PathTile::mark_heads(const Span& span) {
  const ValueId zero = b_.widen(b_.splat(b_.constant(DType::u8, 0)), kFlagLoad);
  const ValueId head = b_.splat(b_.constant(DType::u8, kHead));
  const ValueId gap = b_.splat(b_.constant(DType::u8, kGap));
  const int all = elements_a_row(plan_) * plan_.rows;
  constexpr int kStep = kFlagLoad * kWarpWidth;
  for (int at = 0; at <= all; at += kStep) b_.shared_store(flags_, {b_.i64(at)}, zero);
  b_.barrier();
  const ValueId first_lane = b_.compute(Op::eq, {b_.lane(), b_.i32(0)});
  const auto cut = [&](ValueId element, ValueId mask) {
    b_.shared_store(flags_, {i64_of(b_.sub(element, base_))}, gap, mask);
  };
  cut(span.element, b_.both(first_lane, b_.compute(Op::bit_not, {goes_on_})));
  cut(span.next_element, first_lane);
  b_.barrier();  // one byte may be set by several lanes, and the last one counts
  const ValueId behind = b_.min(b_.add(span.next_segment, b_.i32(1)), near_segments_);
  const auto set = [&](ValueId place, ValueId mask, ValueId flag) {
    const ValueId offset = b_.select(mask, place, b_.i32(0));
    b_.shared_store(flags_, {.base = b_.i64(0), .group = 1, .offset = offset}, flag, mask);
  };
  b_.loop(span.segment, behind, b_.i32(kWarpWidth), {},
          [&](ValueId first, const Builder::Values&) -> Builder::Values {
            const ValueId exists = b_.lt(b_.add(first, b_.lane()), behind);
            const Builder::Values bounds = near_at(first, span);
            const ValueId begin = place_of(bounds[0], span), end = place_of(bounds[1], span);
            // Two segments with elements do not begin at the same place.
            const ValueId has = b_.both(exists, b_.lt(begin, end));
            const auto within = [&](ValueId place) {
              return b_.both(has,
                             b_.both(b_.compute(Op::ge, {place, first_}), b_.lt(place, behind_)));
            };
            // What follows an end may be a gap, or a segment: begins are set behind ends.
            if (pairs_) {
              set(end, within(end), gap);
              b_.barrier();
            }
            set(begin, within(begin), head);
            if (pairs_) b_.barrier();
            return {};
          });
  b_.barrier();
}

void PathTile::fold_rows(const Span& span) {
  Carry carry{.going = {.open = tile_.identities(), .quiet = tile_.identities()}};
  Partials& open = carry.going.open;
  for (std::size_t f = 0; f < open.size(); ++f)
    open[f] = going_.choose(b_.splat(goes_on_), (*open_)[f], open[f]);
  carry.going.is_quiet = b_.boolean(false);
  if (asks_before_) carry.head_at = b_.splat(b_.i32(-1));
  if (scanned_ != nullptr && pairs_) carry.gap = b_.splat(b_.boolean(false));
  if (plan_.rows == 1) {
    fold_row(b_.i64(0), span, carry);
    return;
  }
  const std::int64_t row_elements = elements_a_row(plan_);
  const ValueId rows =
      b_.div(b_.add(i64_of(behind_), b_.i64(row_elements - 1)), b_.i64(row_elements));
  b_.loop(b_.i64(0), rows, b_.i64(1), flatten(carry),
          [&](ValueId row, const Builder::Values& values) {
            Carry next = unflatten(values);
            fold_row(row, span, next);
            return flatten(next);
          });
}

Builder::Values PathTile::flatten(const Carry& carry) {
  Builder::Values values = going_.flatten(carry.going);
  if (carry.head_at != kNoValue) values.push_back(carry.head_at);
  if (carry.gap != kNoValue) values.push_back(carry.gap);
  return values;
}

PathTile::Carry PathTile::unflatten(Builder::Values values) {
  Carry carry;
  const auto take = [&](ValueId& to, bool there) {
    if (!there) return;
    to = values.back();
    values.pop_back();
  };
  take(carry.gap, scanned_ != nullptr && pairs_);
  take(carry.head_at, asks_before_);
  carry.going = going_.unflatten(values);
  return carry;
}

void PathTile::fold_row(ValueId row, const Span& span, Carry& carry) {
  Row loaded;
  find_heads(row, loaded);
  if (plan_.rows == 1 || scanned_ != nullptr || mirrored_) {
    load_row(row, span, loaded, carry.head_at);
    if (asks_before_) carry.head_at = loaded.place_behind;
    scan_row(row, loaded, carry);
    return;
  }
  // A row without heads is folded lane by lane, and one in whose place no segment ends needs no
  // states of its elements.
  const ValueId next = b_.shared_load(
      flags_, {.base = b_.mul(b_.add(row, b_.i64(1)), b_.i64(elements_a_row(plan_))), .group = 1});
  const ValueId ends = b_.compute(Op::ne, {next, b_.constant(DType::u8, 0)});
  const ValueId is_loud = b_.any(b_.compute(Op::bit_or, {loaded.has_head, ends}));
  const Carry before = carry;
  carry = unflatten(b_.branch_as_is(
      is_loud,
      [&] {
        Carry next_carry = before;
        // What quiet rows have left comes before this one.
        next_carry.going = {.open = going_.settle(before.going),
                            .quiet = tile_.identities(),
                            .is_quiet = b_.boolean(false)};
        Row all = loaded;
        load_row(row, span, all, before.head_at);
        if (asks_before_) next_carry.head_at = all.place_behind;
        scan_row(row, all, next_carry);
        return flatten(next_carry);
      },
      [&] {
        Carry next_carry = before;
        Row all_quiet = loaded;
        load_row(row, span, all_quiet, before.head_at);
        going_.add(all_quiet.loads, next_carry.going);
        return flatten(next_carry);
      }));
}

void PathTile::find_heads(ValueId row, Row& loaded) {
  const int each = elements_a_lane(plan_);
  const ValueId at = b_.mul(row, b_.i64(elements_a_row(plan_)));
  const ValueId flags = b_.shared_load(flags_, {at}, each);
  const ValueId heads = b_.compute(Op::ne, {flags, b_.constant(DType::u8, 0)});
  loaded.flags = flags;
  for (int i = 0; i < each; ++i) {
    loaded.heads.push_back(each == 1 ? heads : b_.extract(heads, i));
    loaded.has_head =
        i == 0 ? loaded.heads[0] : b_.compute(Op::bit_or, {loaded.has_head, loaded.heads.back()});
  }
}

Partial PathTile::from_lane(const Partial& part, ValueId lane) {
  Partial taken = part;
  for (ValueId& field : taken.fields) field = b_.shuffle_from(b_.splat(field), lane);
  return taken;
}

void PathTile::scan_row(ValueId row, Row& loaded, Carry& carry) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const ValueId at = b_.mul(row, b_.i64(elements_a_row(plan_)));
  const ValueId lane = b_.lane(), none = b_.i32(-1);
  // The last lane up to each one that has a head, and up to the one before it.
  const ValueId head = largest_so_far(b_, b_.select(loaded.has_head, lane, none));
  const ValueId is_first = b_.compute(Op::eq, {lane, b_.i32(0)});
  const ValueId earlier = b_.select(is_first, none, b_.shuffle_up(head, 1));
  const ValueId open_here = b_.lt(earlier, b_.i32(0));
  const ValueId last_lane = b_.splat(b_.i32(kWarpWidth - 1));
  const ValueId last_head = b_.shuffle_from(head, last_lane);
  const ValueId all_open = b_.lt(last_head, b_.i32(0));
  const ValueId nearest = b_.compute(Op::max, {head, b_.i32(0)});
  std::vector<Partials> loads;
  for (const Loaded& load : loaded.loads) loads.push_back(tile_.fold_elements(load));
  std::vector<std::vector<Partial>> all(graph_.folds.size());  // of each fold, an element each
  Partials all_before;
  for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
    Partial state;
    for (int i = 0; i < each; ++i) {
      const Partial element =
          PathGoing::element_of(b_, loads[static_cast<std::size_t>(i / width)][f], i % width);
      const Partial alone = tile_.lift(f, element);
      // Where sums of elements may leave their range only states are merged.
      const Partial& added = tile_.is_guarded(f) ? alone : element;
      state = i == 0 ? alone
                     : going_.choose(loaded.heads[static_cast<std::size_t>(i)], alone,
                                     merge(f, state, added));
      if (scanned_ != nullptr) {
        all[f].push_back(state);
      } else {
        own_.store(b_, tile_, f, {b_.add(at, b_.i64(std::int64_t{i} * kWarpWidth))}, state,
                   kNoValue);
      }
    }
    const auto merging = [&](const Partial& x, const Partial& y) { return merge(f, x, y); };
    state = going_.since_heads(std::move(state), nearest, merging);
    Partial& open = carry.going.open[f];
    const Partial before = going_.before_lanes(state, open, is_first, open_here, merging);
    before_.store(b_, tile_, f, {b_.mul(row, b_.i64(kWarpWidth))}, before, kNoValue);
    if (scanned_ != nullptr) {
      ValueId begun = kNoValue;  // whether a segment has begun among the lane's elements
      for (int i = 0; i < each; ++i) {
        const ValueId begins = loaded.heads[static_cast<std::size_t>(i)];
        begun = i == 0 ? begins : b_.compute(Op::bit_or, {begun, begins});
        Partial& one = all[f][static_cast<std::size_t>(i)];
        one = going_.choose(begun, one, merge(f, before, one));
        own_.store(b_, tile_, f, {b_.add(at, b_.i64(std::int64_t{i} * kWarpWidth))}, one, kNoValue);
      }
    }
    all_before.push_back(before);
    if (plan_.rows == 1) continue;
    const Partial end = from_lane(state, last_lane);
    open = going_.choose(all_open, merge(f, open, end), end);
  }
  if (scanned_ == nullptr) return;
  hand_over_elements(row, loaded, all, all_before, gaps_of(loaded, earlier, last_head, carry));
}

std::vector<ValueId> PathTile::gaps_of(const Row& loaded, ValueId earlier, ValueId last,
                                       Carry& carry) {
  if (carry.gap == kNoValue) return {};
  const int each = elements_a_lane(plan_);
  const auto is_gap = [&](int i) {
    const ValueId flag = each == 1 ? loaded.flags : b_.extract(loaded.flags, i);
    return b_.compute(Op::eq, {flag, b_.constant(DType::u8, kGap)});
  };
  // What each lane's last head says goes on until the next lane that has one.
  ValueId own = b_.splat(b_.boolean(false));
  for (int i = 0; i < each; ++i)
    own = b_.select(loaded.heads[static_cast<std::size_t>(i)], is_gap(i), own);
  const ValueId words = b_.convert(own, DType::i32);
  const auto of_lane = [&](ValueId source) {
    const ValueId there = b_.shuffle_from(words, b_.compute(Op::max, {source, b_.i32(0)}));
    return b_.select(b_.lt(source, b_.i32(0)), carry.gap, b_.compute(Op::ne, {there, b_.i32(0)}));
  };
  std::vector<ValueId> gaps;
  ValueId now = of_lane(earlier);
  for (int i = 0; i < each; ++i) {
    now = b_.select(loaded.heads[static_cast<std::size_t>(i)], is_gap(i), now);
    gaps.push_back(now);
  }
  carry.gap = of_lane(last);
  return gaps;
}

void PathTile::hand_over_elements(ValueId row, const Row& loaded,
                                  const std::vector<std::vector<Partial>>& states,
                                  const Partials& before, const std::vector<ValueId>& gaps) {
  const int width = plan_.load_width, each = elements_a_lane(plan_);
  const ValueId first = b_.add(in_all(base_), b_.mul(row, b_.i64(elements_a_row(plan_))));
  const ValueId place = first_of_lane(row);
  const ValueId behind = behind_;
  const std::vector<std::optional<ScanForm>> forms = scan_forms(graph_);
  for (int i = 0; i < each; i += width) {
    Scanned result{.load = &loaded.loads[static_cast<std::size_t>(i / width)],
                   .values = std::vector<ValueId>(graph_.folds.size(), kNoValue),
                   .at = b_.add(first, b_.i64(i)),
                   .stride = each};
    if (asks_extent_) result.extent = extents_of(row, i, loaded);
    for (int j = i; j < i + width; ++j) {
      const ValueId at = b_.add(place, b_.i32(j));
      ValueId counts = b_.both(b_.compute(Op::ge, {at, first_}), b_.lt(at, behind));
      if (!gaps.empty())
        counts = b_.both(counts, b_.compute(Op::bit_not, {gaps[static_cast<std::size_t>(j)]}));
      result.counts.push_back(counts);
    }
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      if (!forms[f]) continue;
      Builder::Values values;
      for (int j = i; j < i + width; ++j) {
        Partial state = states[f][static_cast<std::size_t>(j)];
        if (forms[f]->exclusive) {
          const Partial& last = j == 0 ? before[f] : states[f][static_cast<std::size_t>(j - 1)];
          state = going_.choose(loaded.heads[static_cast<std::size_t>(j)], tile_.identity(f), last);
        }
        values.push_back(b_.splat(tile_.finalize(f, state)));
      }
      result.values[f] = b_.concat(std::move(values));
    }
    (*scanned_)(result);
  }
}

Partials PathTile::hand_over(const Span& span, const Partials& open, const Sink& ended) {
  const int each = elements_a_lane(plan_);
  const ValueId behind = b_.add(span.next_segment, b_.i32(1));
  const ValueId lane = b_.lane();
  const auto take = [&](ValueId first, const Builder::Values&) {
    const ValueId segment = b_.add(first, lane);
    const ValueId exists = b_.lt(segment, b_.min(behind, near_segments_));
    const Builder::Values bounds = near_at(first, span);
    const ValueId begin = bounds[0], end = bounds[1];
    const ValueId real = b_.both(exists, b_.lt(segment, span.next_segment));
    // The segment that goes on behind the tile ends there, so far.
    const ValueId begins = place_of(begin, span), stops = place_of(end, span);
    const ValueId inside = b_.both(exists, b_.lt(b_.compute(Op::max, {begins, first_}), stops));
    const ValueId last = b_.select(inside, b_.sub(stops, b_.i32(1)), b_.i32(0));
    const ValueId in_lane = b_.compute(Op::bit_and, {last, b_.i32(each - 1)});
    const ValueId lane_begin = b_.sub(last, in_lane);
    const ValueId owner = b_.compute(Op::shr, {last, b_.i32(ceil_log2(each))});
    const ValueId own_lane = b_.compute(Op::bit_and, {owner, b_.i32(kWarpWidth - 1)});
    // Rows of lanes, each of `each` rows of elements.
    const ValueId of_rows = b_.mul(b_.sub(owner, own_lane), b_.i32(each));
    const ValueId cell = b_.add(of_rows, b_.add(b_.mul(in_lane, b_.i32(kWarpWidth)), own_lane));
    const ValueId goes_on = b_.both(exists, b_.lt(begins, first_));
    Partials states = own_.load(b_, tile_, {.base = b_.i64(0), .group = 1, .offset = cell}, inside);
    // States of elements that have results are full.
    if (scanned_ == nullptr) {
      const ValueId since = b_.compute(Op::max, {lane_begin, first_});
      const ValueId reaches = b_.both(inside, b_.lt(begins, since));
      const Partials before =
          before_.load(b_, tile_, {.base = b_.i64(0), .group = 1, .offset = owner}, reaches);
      for (std::size_t f = 0; f < states.size(); ++f)
        states[f] = going_.choose(reaches, merge(f, before[f], states[f]), states[f]);
    }
    const ValueId only_before = b_.both(goes_on, b_.compute(Op::bit_not, {inside}));
    for (std::size_t f = 0; f < states.size(); ++f)
      states[f] = going_.choose(only_before, open[f], states[f]);
    const ValueId before = b_.lt(begin, b_.min(end, stretch_first_));
    ended({.first = of_all(first),
           .real = real,
           .cut = b_.both(real, before),
           .extent = asks_lengths_ ? extents_at(first, span) : kNoValue,
           .states = states});
    const ValueId last_one = b_.compute(
        Op::max, {b_.i32(0), b_.min(b_.sub(span.next_segment, first), b_.i32(kWarpWidth - 1))});
    Partials taken;
    for (const Partial& state : states) taken.push_back(from_lane(state, b_.splat(last_one)));
    return tile_.flatten(taken);
  };
  const Builder::Values none = tile_.flatten(tile_.identities());
  const Builder::Values next = b_.loop(span.segment, behind, b_.i32(kWarpWidth), none, take);
  b_.barrier();
  return tile_.unflatten(next);
}

}  // namespace chainfold::codegen
