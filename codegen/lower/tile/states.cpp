#include "chainfold/codegen/lower/tile/states.hpp"

namespace chainfold::codegen {

StateArrays StateArrays::in_shared(Program& program, const Graph& graph, const std::string& name,
                                   int length) {
  auto& shared = program.launches.back().shared;
  const auto first = static_cast<int>(shared.size());
  int field = 0;
  for (const Fold& fold : graph.folds) {
    for (const DType type : fold.state)
      shared.push_back({name + "_" + std::to_string(field++), type, length});
  }
  return {Memory::shared, first};
}

int StateArrays::array_of(const Graph& graph, std::size_t fold) const {
  int array = first_;
  for (std::size_t f = 0; f < fold; ++f) array += static_cast<int>(graph.folds[f].state.size());
  return array;
}

void StateArrays::store(Builder& b, TileLowering& tile, std::size_t fold, const Address& at,
                        const Partial& state, ValueId mask) const {
  int array = array_of(tile.graph(), fold);
  for (const ValueId field : tile.flatten({state})) {
    if (memory_ == Memory::shared) {
      b.shared_store(array++, at, field, mask);
    } else {
      b.store(array++, at, field, mask);
    }
  }
}

void StateArrays::store(Builder& b, TileLowering& tile, const Address& at, const Partials& states,
                        ValueId mask) const {
  for (std::size_t f = 0; f < states.size(); ++f) store(b, tile, f, at, states[f], mask);
}

void StateArrays::store_one(Builder& b, TileLowering& tile, ValueId at,
                            const Partials& states) const {
  store(b, tile, {at}, states, b.compute(Op::eq, {b.lane(), b.i32(0)}));
}

Partial StateArrays::load(Builder& b, TileLowering& tile, std::size_t fold, const Address& at,
                          ValueId mask) const {
  int array = array_of(tile.graph(), fold);
  const std::size_t fields = tile.graph().folds[fold].state.size();
  Partial state{.fields = std::vector<ValueId>(fields, kNoValue), .lifted = true};
  if (mask != kNoValue) state = tile.identity(fold);
  for (ValueId& field : state.fields) {
    const ValueId loaded =
        memory_ == Memory::shared ? b.shared_load(array, at, 1, mask) : b.load(array, at, 1, mask);
    field = mask == kNoValue ? loaded : b.select(mask, loaded, field);
    ++array;
  }
  return state;
}

Partials StateArrays::load_uniform(Builder& b, TileLowering& tile, ValueId at, ValueId mask) const {
  Partials states = tile.identities();
  int array = first_;
  for (Partial& state : states)
    for (ValueId& field : state.fields)
      field = b.select(mask, b.load_uniform(array++, at, mask), field);
  return states;
}

Partials StateArrays::load(Builder& b, TileLowering& tile, const Address& at, ValueId mask) const {
  Partials states;
  for (std::size_t f = 0; f < tile.graph().folds.size(); ++f)
    states.push_back(load(b, tile, f, at, mask));
  return states;
}

}  // namespace chainfold::codegen
