#include "chainfold/codegen/lower/tile/tile.hpp"

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/value_range.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

std::vector<bool> inputs_used(const Graph& graph) {
  std::vector<bool> used(graph.inputs.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::input) used[static_cast<std::size_t>(node.index)] = true;
  }
  return used;
}

}  // namespace

void on_first_warp(Builder& builder, int warps, const std::function<void()>& body) {
  auto run = [&] {
    body();
    return Builder::Values{};
  };
  if (warps == 1) {
    run();
  } else {
    builder.branch(builder.compute(Op::eq, {builder.warp(), builder.i32(0)}), run,
                   [] { return Builder::Values{}; });
  }
}

TileLowering::TileLowering(Builder& builder, const Graph& graph, const Plan& plan)
    : b_(builder), graph_(graph), plan_(plan), input_used_(inputs_used(graph)) {
  read_ahead_as_planned();
  fold_nodes_.assign(graph.folds.size(), kNoNode);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.kind == NodeKind::fold || node.kind == NodeKind::scan)
      fold_nodes_[static_cast<std::size_t>(node.index)] = static_cast<NodeId>(i);
  }
  uses_index_ = reads_index(graph);
  ordered_ = needs_order(graph);
  guarded_ = guarded_folds(graph);
  for (std::size_t f = 0; f < graph.folds.size(); ++f)
    if (graph.folds[f].quick) quick_.push_back(f);
}

const Node& TileLowering::fold_node(std::size_t fold) const {
  return graph_.node(fold_nodes_[own(fold)]);
}

std::span<const NodeId> TileLowering::operands_of(std::size_t fold) const {
  return std::span(fold_node(fold).operands).first(fold_of(fold).operands.size());
}

ValueId TileLowering::uniform_value(NodeId id) {
  const Node& node = graph_.node(id);
  const int literals = static_cast<int>(graph_.literals.size());
  switch (node.kind) {
    case NodeKind::constant: return b_.constant(node.type, node.bits);
    case NodeKind::literal: return b_.param(node.index);
    case NodeKind::param: return b_.param(literals + node.index);
    default: return kNoValue;
  }
}

ValueId TileLowering::index_value(const Scope& scope) {
  if (scope.across || b_.type(scope.position).width > 1) return scope.position;
  Builder::Values offsets;
  for (int i = 0; i < scope.width; ++i) offsets.push_back(b_.i64(i));
  return b_.add(scope.position, b_.concat(std::move(offsets)));
}

ValueId TileLowering::node_value(NodeId id, Scope& scope) {
  if (auto it = scope.values.find(id); it != scope.values.end()) return it->second;
  const Node& node = graph_.node(id);
  ValueId value = uniform_value(id);
  if (node.kind == NodeKind::compute) {
    Builder::Values operands;
    for (NodeId operand : node.operands) operands.push_back(node_value(operand, scope));
    value =
        is_cast(node.op) ? b_.cast(node.op, operands[0], node.type) : b_.compute(node.op, operands);
  }
  if (node.kind == NodeKind::index && scope.position != kNoValue) value = index_value(scope);
  if (value == kNoValue) throw InternalError("a node is read before it has a value", print(graph_));
  scope.values.emplace(id, value);
  return value;
}

std::vector<ValueId> TileLowering::call(const Lambda& lambda,
                                        const std::vector<ValueId>& arguments) {
  std::vector<ValueId> values = arguments;
  for (const Lambda::Step& step : lambda.steps) {
    if (step.operands.empty()) {
      values.push_back(b_.constant(step.type, step.bits));
      continue;
    }
    Builder::Values operands;
    for (int operand : step.operands) operands.push_back(values[static_cast<std::size_t>(operand)]);
    values.push_back(step.op == Op::convert ? b_.convert(operands[0], step.type)
                                            : b_.compute(step.op, operands));
  }
  std::vector<ValueId> results;
  for (int result : lambda.results) results.push_back(values[static_cast<std::size_t>(result)]);
  return results;
}

Partial TileLowering::identity(std::size_t fold) {
  const Fold& f = fold_of(fold);
  Partial partial{.fields = {}, .lifted = true};
  for (std::size_t i = 0; i < f.state.size(); ++i)
    partial.fields.push_back(b_.constant(f.state[i], f.init[i]));
  return partial;
}

Partials TileLowering::identities() {
  Partials states;
  for (std::size_t f = 0; f < count(); ++f) states.push_back(identity(f));
  return states;
}

Partial TileLowering::neutral(std::size_t fold, bool lifted) {
  if (lifted) return identity(fold);
  const Fold& f = fold_of(fold);
  if (f.moments) return identity(fold);
  return {.fields = {b_.constant(f.operands[0], f.tile_identity)}};
}

Partial TileLowering::lift(std::size_t fold, const Partial& a) {
  if (a.lifted) return a;
  if (fold_of(fold).moments) return lift_moments(fold, a);
  return {.fields = call(fold_of(fold).lift, a.fields), .lifted = true, .complete = a.complete};
}

Partials TileLowering::lift(Partials a) {
  for (std::size_t f = 0; f < a.size(); ++f) a[f] = lift(f, a[f]);
  return a;
}

Partial TileLowering::collapse(std::size_t fold, Partial a) {
  if (!a.lifted || !fold_of(fold).tile) return a;
  a.fields = {call(fold_of(fold).finalize, a.fields)[0]};
  a.lifted = false;
  return a;
}

Partials TileLowering::collapse(Partials a) {
  for (std::size_t f = 0; f < a.size(); ++f) a[f] = collapse(f, std::move(a[f]));
  return a;
}

Partial TileLowering::merge(std::size_t fold, const Partial& a, const Partial& b) {
  const Fold& f = fold_of(fold);
  if (b.absorbed) {
    Partial both = b;
    both.absorbed = false;
    return both;
  }
  const bool complete = a.complete && b.complete;
  if (a.centred && b.centred) {  // of one group: it has one count and one mean
    Partial merged = a;
    merged.fields.back() = b_.add(a.fields.back(), b.fields.back());
    return merged;
  }
  if (f.moments && !a.lifted && !b.lifted) return merge_near(fold, a, b);
  if (!a.lifted && !b.lifted) {
    return {.fields = {b_.compute(*f.tile, {a.fields[0], b.fields[0]})}, .complete = complete};
  }
  // One more rounding has no room in the bound of values that a matrix instruction has rounded.
  const bool accumulates = f.accumulate && how(fold).unit == Unit::simt;
  if (accumulates && a.lifted != b.lifted && (a.lifted || f.commutative)) {
    std::vector<ValueId> arguments = a.lifted ? a.fields : b.fields;
    arguments.push_back(a.lifted ? b.fields[0] : a.fields[0]);
    return {.fields = call(*f.accumulate, arguments), .lifted = true, .complete = complete};
  }
  std::vector<ValueId> arguments = lift(fold, a).fields;
  const std::vector<ValueId> right = lift(fold, b).fields;
  arguments.insert(arguments.end(), right.begin(), right.end());
  return {.fields = call(f.merge, arguments), .lifted = true, .complete = complete};
}

Partials TileLowering::merge(const Partials& a, const Partials& b) {
  Partials merged;
  for (std::size_t f = 0; f < a.size(); ++f) merged.push_back(merge(f, a[f], b[f]));
  return merged;
}

Partial TileLowering::tree(std::size_t fold, std::vector<Partial> parts) {
  // Values that a matrix instruction has already rounded are summed with compensation: its own
  // error takes up most of the bound.
  const FoldPlan& by = how(fold);
  const bool rounded =
      by.unit != Unit::simt && by.mma_row >= 0 &&
      mma_table()[static_cast<std::size_t>(by.mma_row)].rounding == MmaRounding::toward_zero;
  if (rounded && parts.size() > 1) {
    for (Partial& part : parts) part = lift(fold, part);
  }
  while (parts.size() > 1) {
    std::vector<Partial> next;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      next.push_back(merge(fold, parts[i], parts[i + 1]));
    if (parts.size() % 2) next.push_back(parts.back());
    parts = std::move(next);
  }
  return parts[0];
}

TileLowering::Scope TileLowering::scope_of(const Loaded& tile) const {
  Scope scope{.values = {}, .position = tile.position, .width = tile.width, .across = tile.across};
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (node.kind == NodeKind::input) {
      scope.values[static_cast<NodeId>(i)] = tile.inputs[static_cast<std::size_t>(node.index)];
    }
  }
  return scope;
}

Partials TileLowering::fold_tile(const Loaded& tile) {
  Scope scope = scope_of(tile);
  Partials partials;
  for (std::size_t f = 0; f < count(); ++f) partials.push_back(fold_one(f, tile, scope));
  return partials;
}

Partial TileLowering::fold_one(std::size_t fold, const Loaded& tile, Scope& scope) {
  const bool whole_vector = tile.width == plan_.load_width;  // edges come one element a lane
  if (by_quads(fold, tile)) return fold_quads(fold, tile);
  if (how(fold).unit != Unit::simt && whole_vector) return fold_mma(fold, tile);
  return fold_simt(fold, tile, scope);
}

Partial TileLowering::fold_element(std::size_t fold, const Loaded& tile, Scope& scope) {
  const Node& node = fold_node(fold);
  Partial part{.fields = {}, .lifted = !fold_of(fold).tile};
  for (const NodeId operand : operands_of(fold)) part.fields.push_back(node_value(operand, scope));
  if (part.lifted) part.fields = call(fold_of(fold).lift, part.fields);
  if (node.filter != kNoNode)
    part = keep_where(fold, std::move(part), node_value(node.filter, scope));
  if (tile.valid != kNoValue && !(tile.zeros && zeros_are_harmless(fold)))
    part = keep_where(fold, std::move(part), tile.valid);
  if (tile.mask != kNoValue && !zeros_are_harmless(fold))
    part = keep_where(fold, std::move(part), tile.mask);
  return part;
}

Partials TileLowering::fold_elements(const Loaded& tile) {
  Scope scope = scope_of(tile);
  Partials partials;
  for (std::size_t f = 0; f < count(); ++f) partials.push_back(fold_element(f, tile, scope));
  return partials;
}

bool TileLowering::keeps_zero(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.kind == NodeKind::input) return true;
  if (node.kind != NodeKind::compute) return false;
  if (node.op == Op::convert || node.op == Op::abs) return keeps_zero(node.operands[0]);
  return node.op == Op::mul && keeps_zero(node.operands[0]) && keeps_zero(node.operands[1]);
}

bool TileLowering::zeros_are_harmless(std::size_t fold) const {
  const Node& node = fold_node(fold);
  return fold_of(fold).tile == Op::add && node.filter == kNoNode && keeps_zero(node.operands[0]);
}

Partial TileLowering::fold_simt(std::size_t fold, const Loaded& tile, Scope& scope) {
  if (takes_elements(fold)) return accumulate(fold, {tile});
  if (fold_of(fold).relative) return fold_relative(fold, {tile});
  const Fold& f = fold_of(fold);
  const Node& node = fold_node(fold);
  const bool any = tile.zeros && zeros_are_harmless(fold);
  const ValueId filter =
      b_.both(any ? kNoValue : tile.valid,
              node.filter == kNoNode ? kNoValue : node_value(node.filter, scope));
  const bool follow = tile.position != kNoValue && b_.type(tile.position).width == 1;
  if (has_place(fold) && tile.width > 1 && follow && !vector_lanes()) {
    const ValueId value = b_.widen(node_value(operands_of(fold)[0], scope), tile.width);
    // A filter of parameters is one for all elements.
    const bool of_all = filter != kNoValue && b_.type(filter).width == 1;
    const Partial state = locate(fold, tile, value, of_all ? kNoValue : filter);
    const ValueId counts = b_.both(of_all ? filter : kNoValue, tile.mask);
    return counts == kNoValue ? state : keep_where(fold, state, counts);
  }
  Partial part{.fields = {}, .lifted = !f.tile};
  for (NodeId operand : operands_of(fold)) {
    const NodeId narrow = narrow_sum(f, operand, tile.width);
    part.fields.push_back(narrow == kNoNode ? node_value(operand, scope)
                                            : b_.convert(node_value(narrow, scope), DType::i32));
  }
  if (!f.commutative) {
    part = fold_in_order(fold, part.fields, filter, 0, tile.width);
    if (tile.mask != kNoValue) part = keep_where(fold, std::move(part), tile.mask);
    return part;
  }
  if (part.lifted) part.fields = call(f.lift, part.fields);
  if (filter != kNoValue) part = keep_where(fold, std::move(part), filter);
  part = merge_halves(fold, std::move(part), tile.width);
  if (f.tile && b_.type(part.fields[0]).elem != f.operands[0])
    part.fields[0] = b_.convert(part.fields[0], f.operands[0]);
  if (tile.mask != kNoValue && !zeros_are_harmless(fold))
    part = keep_where(fold, std::move(part), tile.mask);
  return part;
}

/// Neighbours of half a load's distance, until each lane has one. A field that is one constant for
/// all elements (a count of 1) stays one meanwhile.
Partial TileLowering::merge_halves(std::size_t fold, Partial part, int width) {
  auto half = [&](ValueId v, int of, int which) {
    return b_.type(v).width == of ? b_.extract(v, which * of / 2, of / 2) : v;
  };
  bool wide = false;
  for (ValueId v : part.fields) wide = wide || b_.type(v).width == width;
  if (!wide)
    part.fields[0] = b_.concat(Builder::Values(static_cast<std::size_t>(width), part.fields[0]));
  for (; width > 1; width /= 2) {
    Partial low = part, high = part;
    for (std::size_t i = 0; i < part.fields.size(); ++i) {
      low.fields[i] = half(part.fields[i], width, 0);
      high.fields[i] = half(part.fields[i], width, 1);
    }
    part = merge(fold, low, high);
  }
  return part;
}

Partial TileLowering::accumulate(std::size_t fold, const std::vector<Loaded>& batch) {
  const Fold& f = fold_of(fold);
  const Node& node = fold_node(fold);
  Partial state = identity(fold);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Loaded& tile = batch[i];
    Scope scope = scope_of(tile);
    const ValueId filter = node.filter == kNoNode ? kNoValue : node_value(node.filter, scope);
    const ValueId takes = b_.both(b_.both(tile.valid, filter), tile.mask);
    std::vector<ValueId> arguments = i == 0 ? std::vector<ValueId>{} : state.fields;
    for (const NodeId operand : operands_of(fold))
      arguments.push_back(b_.widen(node_value(operand, scope), tile.width));
    const std::vector<ValueId> next = call(i == 0 ? f.lift : *f.accumulate, arguments);
    for (std::size_t k = 0; k < next.size(); ++k) {
      ValueId& field = state.fields[k];
      field = takes == kNoValue ? next[k] : b_.select(takes, next[k], field);
    }
  }
  if (batch.front().across) return state;
  return merge_halves(fold, std::move(state), batch.front().width);
}

/// What a lane may add up as i32 before it widens the sum: 64-bit additions take two instructions.
NodeId TileLowering::narrow_sum(const Fold& fold, NodeId operand, int width) const {
  const Node& node = graph_.node(operand);
  if (fold.tile != Op::add || width == 1 || size_of(node.type) != 8 || !is_integer(node.type))
    return kNoNode;
  if (node.kind != NodeKind::compute || node.op != Op::convert) return kNoNode;
  const Node& from = graph_.node(node.operands[0]);
  if (is_float(from.type) || size_of(from.type) > 4) return kNoNode;
  // Below 2^31 in absolute terms, all of them.
  const int exponent = exponent_bound(graph_, node.operands[0]) + ceil_log2(width);
  return exponent <= 31 ? node.operands[0] : kNoNode;
}

Partial TileLowering::keep_where(std::size_t fold, Partial part, ValueId condition) {
  const Fold& f = fold_of(fold);
  if (f.moments) part = lift(fold, part);
  for (std::size_t i = 0; i < part.fields.size(); ++i) {
    const DType type = b_.type(part.fields[i]).elem;
    const Bits neutral = part.lifted ? f.init[i] : f.tile_identity;
    part.fields[i] = b_.select(condition, part.fields[i], b_.constant(type, neutral));
  }
  return part;
}

Partial TileLowering::fold_in_order(std::size_t fold, const std::vector<ValueId>& operands,
                                    ValueId filter, int first, int width) {
  if (width > 1) {
    const Partial left = fold_in_order(fold, operands, filter, first, width / 2);
    return merge(fold, left, fold_in_order(fold, operands, filter, first + width / 2, width / 2));
  }
  auto element = [&](ValueId v) { return b_.type(v).width > 1 ? b_.extract(v, first) : v; };
  Partial part{.fields = {}, .lifted = false};
  for (ValueId operand : operands) part.fields.push_back(element(operand));
  part = lift(fold, part);
  return filter == kNoValue ? part : keep_where(fold, std::move(part), element(filter));
}

}  // namespace chainfold::codegen
