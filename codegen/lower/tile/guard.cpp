// A part of TileLowering: values for which what folds elements at less cost does not hold. A part's
// sum has left the type's range there, though the whole's need not. A vote tells, once a range or a
// tile, and then its elements are folded once more, one by one.
#include <algorithm>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/value_range.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

/// One element a lane and load, no loads in flight beside it, no matrix instructions.
Plan by_elements(Plan plan) {
  plan.load_width = plan.depth = plan.rows = plan.columns.phases = plan.hints.streams = 1;
  plan.edges = plan.staged.straddle = plan.hints.evict_first = plan.hints.half_vectors =
      plan.promises.guard = false;
  plan.load_rows_first = false;
  plan.mean_loads = 0;
  plan.hints.read_ahead = 0;
  for (FoldPlan& how : plan.folds) how = {};
  return plan;
}

}  // namespace

TileByElements::TileByElements(Builder& builder, const TileLowering& of)
    : graph_(codegen::by_elements(of.graph_, of.guarded_)),
      plan_(by_elements(of.plan_)),
      tile_(builder, graph_, plan_) {
  tile_.read_inputs();
  if (!of.staged_) tile_.place(of.bases_, of.steps_);
}

bool TileLowering::has_guards() const {
  return std::find(guarded_.begin(), guarded_.end(), true) != guarded_.end();
}

ValueId TileLowering::exceeding(const Partials& partials) {
  ValueId exceeding = kNoValue;
  for (std::size_t f = 0; f < partials.size(); ++f) {
    if (!guarded_[f]) continue;
    const Fold::Guard& guard = *fold_of(f).guard;
    const Partial& part = partials[f];
    const ValueId value =
        part.lifted ? part.fields[static_cast<std::size_t>(guard.field)] : part.fields.back();
    const DType type = b_.type(value).elem;
    const ValueId limit = b_.constant(type, bits_of_double(type, guard.limit));
    const ValueId holds = b_.lt(b_.compute(Op::abs, {value}), limit);  // NaN does not
    const ValueId not_here = b_.splat(b_.compute(Op::bit_not, {holds}));
    exceeding = exceeding == kNoValue ? not_here : b_.compute(Op::bit_or, {exceeding, not_here});
  }
  return exceeding;
}

ValueId TileLowering::exceeds(const Partials& partials) {
  const ValueId each = exceeding(partials);
  if (each == kNoValue) return each;
  ValueId exceeds = b_.extract(each, 0);
  for (int i = 1; i < b_.type(each).width; ++i)
    exceeds = b_.compute(Op::bit_or, {exceeds, b_.extract(each, i)});
  return exceeds;
}

Partials TileLowering::fold_range_safely(ValueId begin, ValueId length, ValueId origin,
                                         ValueId row_mask, ValueId warp, int warps) {
  Intervals own;
  Partials quick = fold_share(begin, length, origin, row_mask, warp, warps, own);
  const ValueId bad = exceeds(quick);
  if (bad == kNoValue) return quick;
  const auto slow = [&] {
    TileByElements elements(b_, *this);
    return elements.tile().flatten(elements.tile().fold_intervals(own, origin, row_mask));
  };
  const auto states = b_.branch(b_.any(bad), slow, [&] { return flatten(lift(quick)); });
  return unflatten(states, true);
}

/// One after the other, by one text for all.
Partials TileLowering::fold_intervals(const Intervals& own, ValueId origin, ValueId row_mask) {
  const auto fold = [&](ValueId begin, ValueId length) {
    return fold_range(begin, length, origin, row_mask, b_.i32(0), 1);
  };
  const bool is_one = own.stride == own.length && !own.head && !own.rest && !own.tail;
  if (is_one) return lift(fold(own.first, own.length));
  const ValueId zero = b_.i64(0), one = b_.i64(1);
  const ValueId run = b_.compute(Op::max, {zero, b_.sub(own.stop, own.first)});
  const ValueId count = b_.div(b_.add(run, b_.sub(own.stride, one)), own.stride);
  const ValueId heads = own.head ? one : zero;
  ValueId behind = b_.add(heads, count);  // the run's last one
  struct At {
    ValueId number;
    const Intervals::One* which;
  };
  std::vector<At> others;
  if (own.head) others.push_back({zero, &*own.head});
  for (const std::optional<Intervals::One>* other : {&own.rest, &own.tail}) {
    if (!*other) continue;
    others.push_back({behind, &**other});
    behind = b_.add(behind, one);
  }
  const auto states = b_.loop(
      zero, behind, one, flatten(identities()), [&](ValueId i, const Builder::Values& carried) {
        ValueId begin = b_.add(own.first, b_.mul(b_.sub(i, heads), own.stride));
        ValueId length = own.length;
        for (const At& other : others) {
          const ValueId is_it = b_.compute(Op::eq, {i, other.number});
          ValueId size = b_.sub(other.which->end, other.which->begin);
          if (other.which->by != kNoValue) size = b_.select(other.which->by, size, zero);
          begin = b_.select(is_it, other.which->begin, begin);
          length = b_.select(is_it, b_.compute(Op::max, {zero, size}), length);
        }
        return flatten(lift(merge(unflatten(carried, true), fold(begin, length))));
      });
  return unflatten(states, true);
}

}  // namespace chainfold::codegen
