// A part of TileLowering: folds of less cost, whose states are of another form, for ordinary
// elements. A vote tells for a warp's elements, all of which are folded one way or the other.
#include "chainfold/codegen/lower_tile.hpp"

namespace chainfold::codegen {

ValueId TileLowering::quick_serves(const std::vector<Loaded>& rows) {
  ValueId serves = kNoValue;
  for (const Loaded& row : rows) {
    Scope scope = scope_of(row);
    for (std::size_t f = 0; f < graph_.folds.size(); ++f) {
      if (!graph_.folds[f].quick) continue;
      std::vector<ValueId> operands;
      for (const NodeId operand : operands_of(f)) operands.push_back(node_value(operand, scope));
      const ValueId elements = call(graph_.folds[f].quick->serves, operands)[0];
      for (int i = 0; i < b_.type(elements).width; ++i) {
        const ValueId element = b_.splat(b_.extract(elements, i));
        serves = serves == kNoValue ? element : b_.both(serves, element);
      }
    }
  }
  return serves;
}

Partials TileLowering::widened(Partials quick) {
  for (std::size_t f = 0; f < quick.size(); ++f) {
    if (graph_.folds[f].quick)
      quick[f].fields = call(graph_.folds[f].quick->widen, quick[f].fields);
  }
  return quick;
}

OptionalPartials TileLowering::narrowed(const OptionalPartials& before, ValueId& serves) {
  OptionalPartials narrow = before;
  for (std::size_t f = 0; f < before.size(); ++f) {
    const auto& quick = graph_.folds[f].quick;
    if (!quick || !before[f]) continue;
    std::vector<ValueId> arguments = before[f]->fields;
    append_given(f, arguments);
    narrow[f]->fields = call(quick->narrow, arguments);
    const ValueId size =
        b_.compute(Op::abs, {narrow[f]->fields[static_cast<std::size_t>(quick->field)]});
    const DType type = b_.type(size).elem;
    const ValueId limit = b_.constant(type, bits_of_double(type, quick->limit));
    serves = b_.both(serves, b_.splat(b_.lt(size, limit)));
  }
  return narrow;
}

TileLowering::Scanned TileLowering::either(ValueId serves, const OptionalPartials& before,
                                           const std::function<Scanned(OptionalPartials)>& quick,
                                           const std::function<Scanned(OptionalPartials)>& slow) {
  const OptionalPartials narrow = narrowed(before, serves);
  OptionalPartials states;
  std::size_t count = 0;
  const auto values_of = [&](const Scanned& scanned, bool is_quick) {
    Builder::Values all;
    count = scanned.values.size();
    for (const ValueId value : scanned.values) all.push_back(b_.splat(value));
    states = scanned.states;
    for (std::size_t f = 0; f < states.size(); ++f) {
      if (!states[f]) continue;
      const auto& of = graph_.folds[f].quick;
      if (is_quick && of) states[f]->fields = call(of->widen, states[f]->fields);
      for (const ValueId field : lift(f, *states[f]).fields)
        all.push_back(of ? b_.splat(field) : field);  // others are the same either way
    }
    return all;
  };
  const Builder::Values all = b_.branch_as_is(
      b_.all(serves),
      [&] {
        const Scanned scanned = quickly([&] { return quick(narrow); });
        return values_of(scanned, true);
      },
      [&] { return values_of(slow(before), false); });
  Scanned result{.values = {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)},
                 .states = std::move(states)};
  std::size_t next = count;
  for (std::size_t f = 0; f < result.states.size(); ++f) {
    if (!result.states[f]) continue;
    Partial state = identity(f);
    for (ValueId& field : state.fields) field = all[next++];
    state.complete = !graph_.folds[f].commutative;
    result.states[f] = std::move(state);
  }
  return result;
}

Partials TileLowering::either(const std::vector<Loaded>& rows,
                              const std::function<Partials()>& body,
                              std::function<Partials()> slow) {
  if (!has_quick() || is_quick_) return body();
  if (!slow) slow = body;
  const auto scanned = [this](const std::function<Partials()>& fold) {
    return [this, &fold](const OptionalPartials&) {
      const Partials states = lift(fold());
      return Scanned{.states = {states.begin(), states.end()}};
    };
  };
  const Scanned folded = either(quick_serves(rows), {}, scanned(body), scanned(slow));
  Partials states;
  for (const std::optional<Partial>& state : folded.states) states.push_back(*state);
  return states;
}

TileLowering::Scanned TileLowering::either(const std::vector<Loaded>& rows,
                                           const OptionalPartials& before,
                                           const std::function<Scanned(OptionalPartials)>& body) {
  if (!has_quick() || is_quick_) return body(before);
  return either(quick_serves(rows), before, body, body);
}

}  // namespace chainfold::codegen
