// GraphBuilder's folds of the language, each in the type that it is computed in, and what graphs
// tell about their folds.
#include <algorithm>

#include "chainfold/codegen/graph.hpp"

namespace chainfold::codegen {

NodeId GraphBuilder::sum(NodeId value, NodeId filter) {
  const DType wide = sum_type(type(value));
  return fold(make_sum(wide), {convert(value, wide)}, filter);
}

NodeId GraphBuilder::count(NodeId filter) {
  if (filter == kNoNode || is_constant(filter, 1)) return extent();
  if (level(filter) == Level::uniform) {
    return compute(Op::select, {filter, extent(), constant(DType::i64, 0)});
  }
  return fold(make_sum(DType::i64), {convert(filter, DType::i64)});
}

NodeId GraphBuilder::mean(NodeId value, NodeId filter) {
  const DType in = mean_type(type(value));
  return compute(Op::div, {convert(sum(value, filter), in), convert(count(filter), in)});
}

NodeId GraphBuilder::variance(NodeId value, NodeId filter) {
  const DType in = mean_type(type(value));
  return fold(make_variance(in), {convert(value, in)}, filter);
}

NodeId GraphBuilder::min(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return convert(fold(make_min(in), {convert(value, in)}, filter), kept);
}

NodeId GraphBuilder::max(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return convert(fold(make_max(in), {convert(value, in)}, filter), kept);
}

NodeId GraphBuilder::argmin(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return fold(make_argmin(in), {convert(value, in), index()}, filter);
}

NodeId GraphBuilder::argmax(NodeId value, NodeId filter) {
  const DType kept = type(value), in = is_float(kept) ? compute_type(kept) : kept;
  return fold(make_argmax(in), {convert(value, in), index()}, filter);
}

NodeId GraphBuilder::product(NodeId value, NodeId filter) {
  const DType wide = sum_type(type(value));
  return fold(make_product(wide), {convert(value, wide)}, filter);
}

NodeId GraphBuilder::logsumexp(NodeId value, NodeId filter) {
  const DType in = compute_type(type(value));
  return fold(make_logsumexp(in), {convert(value, in)}, filter);
}

bool needs_order(const Graph& graph) {
  return !std::all_of(graph.folds.begin(), graph.folds.end(),
                      [](const Fold& fold) { return fold.commutative; });
}

}  // namespace chainfold::codegen
