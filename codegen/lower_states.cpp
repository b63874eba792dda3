#include "chainfold/codegen/lower_states.hpp"

#include <utility>

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

void StateArrays::store(Builder& b, TileLowering& tile, const Address& at, const Partials& states,
                        ValueId mask) const {
  int array = first_;
  for (const ValueId field : tile.flatten(states)) {
    if (memory_ == Memory::shared) {
      b.shared_store(array++, at, field, mask);
    } else {
      b.store(array++, at, field, mask);
    }
  }
}

void StateArrays::store_one(Builder& b, TileLowering& tile, ValueId at,
                            const Partials& states) const {
  store(b, tile, {at}, states, b.compute(Op::eq, {b.lane(), b.i32(0)}));
}

Partials StateArrays::load(Builder& b, TileLowering& tile, const Address& at, ValueId mask,
                           const Change& change) const {
  int array = first_;
  auto next = [&] {
    return memory_ == Memory::shared ? b.shared_load(array++, at, 1, mask)
                                     : b.load(array++, at, 1, mask);
  };
  Partials states;
  for (std::size_t f = 0; f < tile.graph().folds.size(); ++f) {
    const std::size_t fields = tile.graph().folds[f].state.size();
    Partial state{.fields = std::vector<ValueId>(fields, kNoValue), .lifted = true};
    if (mask != kNoValue) state = tile.identity(f);
    for (ValueId& field : state.fields) {
      const ValueId loaded = next();
      field = mask == kNoValue ? loaded : b.select(mask, loaded, field);
      if (change) field = change(f, field);
    }
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace chainfold::codegen
