// A part of TileLowering: folds of less cost, whose states are of other forms, for ordinary
// elements. A vote tells for a warp's elements, all of which are folded one way or the other.
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

ValueId TileLowering::quick_serves(const std::vector<Loaded>& rows, bool alone) {
  ValueId serves = kNoValue;
  for (const Loaded& row : rows) {
    Scope scope = scope_of(row);
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      if (!graph_.folds[f].quick) continue;
      std::vector<ValueId> operands;
      for (const NodeId operand : operands_of(f)) operands.push_back(node_value(operand, scope));
      const QuickFold& quick = *graph_.folds[f].quick;
      ValueId elements = call(alone ? quick.serves_alone : quick.serves, operands)[0];
      // Whatever is in the place of others.
      for (const ValueId exists : {row.mask, row.valid}) {
        if (exists == kNoValue) continue;
        elements = b_.compute(Op::bit_or, {elements, b_.compute(Op::bit_not, {exists})});
      }
      for (int i = 0; i < b_.type(elements).width; ++i)
        serves = b_.both(serves, b_.splat(b_.extract(elements, i)));
    }
  }
  return serves;
}

Partials TileLowering::quick_totals(ValueId& serves, const std::function<Partials()>& body) {
  const std::size_t folds = graph_.folds.size();
  Partials totals = quickly(Form::total, [&] {
    Partials all = lift(body());
    for (std::size_t f = folds; f < all.size(); ++f) all[f] = of_warp(f, std::move(all[f]), 1);
    return all;
  });
  for (std::size_t i = 0; i < quick_.size(); ++i) {
    const QuickFold& quick = *graph_.folds[quick_[i]].quick;
    std::vector<ValueId> fields = totals[quick_[i]].fields;
    const std::vector<ValueId>& rest = totals[folds + i].fields;
    fields.insert(fields.end(), rest.begin(), rest.end());
    serves = b_.both(serves, b_.splat(call(quick.holds, fields)[0]));
    totals[quick_[i]].fields = call(quick.widen, fields);
  }
  totals.resize(folds);
  return totals;
}

Partials TileLowering::chosen_totals(ValueId serves, const Partials& totals,
                                     const std::function<Partials()>& slow) {
  const auto fields_of = [&](const Partials& states) {
    Builder::Values fields;
    for (std::size_t f = 0; f < states.size(); ++f) {
      if (!graph_.folds[f].quick) continue;
      for (const ValueId field : states[f].fields) fields.push_back(b_.splat(field));
    }
    return fields;
  };
  const Builder::Values fields = b_.branch(
      b_.all(serves), [&] { return fields_of(totals); }, [&] { return fields_of(lift(slow())); });
  Partials chosen = totals;
  std::size_t next = 0;
  for (std::size_t f = 0; f < chosen.size(); ++f) {
    if (!graph_.folds[f].quick) continue;
    chosen[f].fields.assign(graph_.folds[f].state.size(), kNoValue);
    for (ValueId& field : chosen[f].fields) field = fields[next++];
  }
  return chosen;
}

Partials TileLowering::either(const std::vector<Loaded>& rows,
                              const std::function<Partials()>& body,
                              const std::function<Partials()>& slow) {
  if (!has_quick() || is_quick()) return body();
  ValueId serves = quick_serves(rows);
  const Partials totals = quick_totals(serves, body);
  return chosen_totals(serves, totals, slow ? slow : body);
}

OptionalPartials TileLowering::narrowed(ValueId& serves, const OptionalPartials& before) {
  OptionalPartials narrow = before;
  for (std::size_t f = 0; f < before.size(); ++f) {
    const Fold& own = graph_.folds[f];
    if (!own.quick || (!before[f] && own.given.empty())) continue;
    std::vector<ValueId> arguments = (before[f] ? *before[f] : identity(f)).fields;
    append_given(f, arguments);
    std::vector<ValueId> fields = call(own.quick->narrow, arguments);
    const ValueId size = b_.compute(Op::abs, {fields[static_cast<std::size_t>(own.quick->field)]});
    const DType type = b_.type(size).elem;
    const ValueId limit = b_.constant(type, bits_of_double(type, own.quick->limit));
    serves = b_.both(serves, b_.splat(b_.lt(size, limit)));
    // What is given alone stays what finalize is given.
    if (before[f]) narrow[f]->fields = std::move(fields);
  }
  return narrow;
}

TileLowering::Scanned TileLowering::either(ValueId serves, const OptionalPartials& before,
                                           const Scan& quick,
                                           const std::function<Partial(std::size_t)>& behind,
                                           const Scan& slow) {
  OptionalPartials narrow = narrowed(serves, before);
  Scanned result;
  const auto values_of = [&](Scanned scanned) {
    Builder::Values all;
    for (const ValueId value : scanned.values) all.push_back(b_.splat(value));
    for (std::size_t f = 0; f < scanned.states.size(); ++f) {
      if (!scanned.states[f]) continue;
      // Those of other folds are made alike, so that they are of one shape.
      for (const ValueId field : lift(f, *scanned.states[f]).fields)
        all.push_back(graph_.folds[f].quick ? b_.splat(field) : field);
    }
    result = std::move(scanned);
    return all;
  };
  const Builder::Values all = b_.branch_as_is(
      b_.all(serves),
      [&] {
        Scanned scanned = quickly(Form::scans, [&] { return quick(narrow); });
        for (std::size_t f = 0; f < scanned.states.size(); ++f)
          if (graph_.folds[f].quick && scanned.states[f]) scanned.states[f] = behind(f);
        return values_of(std::move(scanned));
      },
      [&] { return values_of(slow(before)); });
  std::size_t next = 0;
  for (ValueId& value : result.values) value = all[next++];
  for (std::size_t f = 0; f < result.states.size(); ++f) {
    if (!result.states[f]) continue;
    Partial state = identity(f);
    for (ValueId& field : state.fields) field = all[next++];
    state.complete = !graph_.folds[f].commutative;
    result.states[f] = std::move(state);
  }
  return result;
}

}  // namespace chainfold::codegen
