// A part of TileLowering: folds whose state is the largest element and a sum of terms relative to
// it (Fold::relative).
//
// A merge of two states takes a term of its own. Elements that are in registers at once share the
// largest one, so that each of them takes one term, and a merge is needed for all of them together.
#include <algorithm>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"

namespace chainfold::codegen {

namespace {
/// A lane's values that are kept until their largest one is known.
constexpr int kMostAtOnce = 16;
}  // namespace

Partial TileLowering::fold_relative(std::size_t fold, const std::vector<Loaded>& batch) {
  const Fold& f = fold_of(fold);
  const Fold::Relative& relative = *f.relative;
  const Node& node = fold_node(fold);
  const DType type = f.operands[0];
  const int width = batch.front().width;
  const bool across = batch.front().across;
  const auto of_lane = [&](Op op, ValueId value) {
    return across ? value : combine_halves(op, value);
  };

  if (batch.size() == 1 && (width == 1 || across)) {  // no two elements share anything
    Scope scope = scope_of(batch[0]);
    return lift(fold, fold_element(fold, batch[0], scope));
  }
  const auto each = static_cast<std::size_t>(std::max(1, kMostAtOnce / width));
  std::vector<Partial> states;
  for (std::size_t first = 0; first < batch.size(); first += each) {
    std::vector<ValueId> values, counted;
    for (std::size_t i = first; i < std::min(first + each, batch.size()); ++i) {
      const Loaded& tile = batch[i];
      Scope scope = scope_of(tile);
      ValueId value = b_.widen(node_value(operands_of(fold)[0], scope), width);
      const ValueId filter = node.filter == kNoNode ? kNoValue : node_value(node.filter, scope);
      const ValueId counts = b_.both(b_.both(tile.mask, tile.valid), filter);
      if (counts != kNoValue) value = b_.select(counts, value, b_.constant(type, f.init[0]));
      values.push_back(value);
      counted.push_back(counts);
    }
    const ValueId top = of_lane(relative.top, combine_all(relative.top, values));
    const ValueId base = b_.widen(call(relative.base, {top})[0], width);
    std::vector<ValueId> terms;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId term = call(relative.term, {values[i], base})[0];
      terms.push_back(counted[i] == kNoValue
                          ? term
                          : b_.select(counted[i], term, b_.constant(type, f.init[1])));
    }
    const ValueId sum = of_lane(Op::add, combine_all(Op::add, std::move(terms)));
    states.push_back({.fields = {top, sum}, .lifted = true});
  }
  return tree(fold, std::move(states));
}

Partial TileLowering::reduce_relative(std::size_t fold, const Partial& a,
                                      const std::vector<int>& bits) {
  const Fold::Relative& relative = *fold_of(fold).relative;
  const auto of_all = [&](Op op, ValueId value) {
    for (const int bit : bits) value = b_.compute(op, {value, b_.shuffle_xor(value, 1 << bit)});
    return value;
  };
  const ValueId own = b_.splat(a.fields[0]), top = of_all(relative.top, own);
  const ValueId scale = call(relative.term, {own, call(relative.base, {top})[0]})[0];
  return {.fields = {top, of_all(Op::add, b_.splat(b_.mul(a.fields[1], scale)))}, .lifted = true};
}

}  // namespace chainfold::codegen
