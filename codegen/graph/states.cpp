#include "chainfold/codegen/graph/states.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {

namespace {

constexpr std::size_t kIndexField = 1;  // of states (value, index)

[[noreturn]] void refuse(const std::string& what) {
  throw UserError(ErrorCode::unsupported,
                  fmt::format("{}; partial states are of folds of elements", what));
}

/// The first node of each of the graph's folds: what it folds, and which elements.
std::vector<const Node*> nodes_of_folds(const Graph& graph) {
  std::vector<const Node*> nodes(graph.folds.size(), nullptr);
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold) continue;
    const Node*& first = nodes[static_cast<std::size_t>(node.index)];
    if (first == nullptr) first = &node;
  }
  return nodes;
}

bool is_index(const Graph& graph, NodeId id) { return graph.node(id).kind == NodeKind::index; }

/// Whether a fold's states have the index of an element, as argmin's and argmax's.
bool has_index(const Graph& graph, const Fold& fold, const Node& node) {
  return fold.place.has_value() && node.operands.size() > kIndexField &&
         is_index(graph, node.operands[kIndexField]);
}

void check(const Graph& graph) {
  if (has_scans(graph)) refuse("the computation has scans, whose states are what launches carry");
  if (broadcasts(graph)) refuse("elements read folds of their segment");
  std::vector<bool> reads(graph.nodes.size(), false);
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    reads[id] = node.kind == NodeKind::index;
    if (node.kind == NodeKind::fold) continue;
    for (const NodeId operand : node.operands)
      reads[id] = reads[id] || reads[static_cast<std::size_t>(operand)];
  }
  for (const Node& node : graph.nodes) {
    if (node.kind != NodeKind::fold) continue;
    const Fold& fold = graph.folds[static_cast<std::size_t>(node.index)];
    const bool own = has_index(graph, fold, node);
    bool others = node.filter != kNoNode && reads[static_cast<std::size_t>(node.filter)];
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      others = others ||
               (!(own && i == kIndexField) && reads[static_cast<std::size_t>(node.operands[i])]);
    if (others) refuse(fmt::format("{} folds what is computed from cf::index()", fold.name));
  }
}

/// The steps of `what` behind those of `lambda`, for these arguments: its results.
std::vector<int> apply(Lambda& lambda, const Lambda& what, const std::vector<int>& arguments) {
  std::vector<int> values = arguments;
  for (const Lambda::Step& step : what.steps) {
    Lambda::Step copy = step;
    for (int& operand : copy.operands) operand = values[static_cast<std::size_t>(operand)];
    lambda.steps.push_back(std::move(copy));
    values.push_back(static_cast<int>(lambda.params.size() + lambda.steps.size()) - 1);
  }
  std::vector<int> results;
  for (const int result : what.results) results.push_back(values[static_cast<std::size_t>(result)]);
  return results;
}

/// What gives its parameters as they are.
Lambda fields(const std::vector<DType>& types) {
  Lambda same{.params = types, .steps = {}, .results = {}};
  for (int i = 0; i < static_cast<int>(types.size()); ++i) same.results.push_back(i);
  return same;
}

/// A fold whose results are the fields of its states.
Fold telling_states(Fold fold) {
  fold.name += ".state";
  fold.finalize = fields(fold.state);
  fold.given.clear();
  return fold;
}

/// A fold of states, one an element, by the merge of `fold`; its results are the fields.
Fold of_states(const Fold& fold) {
  Fold merging;
  merging.name = fold.name + ".of_states";
  merging.operands = merging.state = fold.state;
  merging.init = fold.init;
  merging.lift = merging.finalize = fields(fold.state);
  merging.merge = fold.merge;
  merging.commutative = fold.commutative;
  return merging;
}

/// The same of states with an index: a number of rows comes first, by which later indices move on.
Fold of_states_with_index(const Fold& fold) {
  Fold merged = of_states(fold);
  merged.name += ".indexed";
  merged.state.insert(merged.state.begin(), DType::i64);
  merged.operands = merged.state;
  merged.init.insert(merged.init.begin(), 0);
  merged.lift = merged.finalize = fields(merged.state);
  merged.commutative = false;
  const int size = static_cast<int>(merged.state.size()), own = size - 1;
  Lambda merge{.params = merged.state, .steps = {}, .results = {}};
  merge.params.insert(merge.params.end(), merged.state.begin(), merged.state.end());
  std::vector<int> arguments;
  for (int i = 0; i < own; ++i) arguments.push_back(1 + i);
  for (int i = 0; i < own; ++i) arguments.push_back(size + 1 + i);
  // The index of nothing stays what it is.
  int& index = arguments[static_cast<std::size_t>(own) + kIndexField];
  const int none = merge.constant(DType::i64, fold.init[kIndexField]);
  const int moved = merge.apply(Op::add, {index, 0});
  index = merge.apply(Op::select, {merge.apply(Op::eq, {index, none}), index, moved});
  merge.results = apply(merge, fold.merge, arguments);
  merge.results.insert(merge.results.begin(), merge.apply(Op::add, {0, size}));
  merged.merge = std::move(merge);
  return merged;
}

/// Writes what a graph computes into a builder, but for folds and what depends on them.
class Copy {
 public:
  Copy(const Graph& graph, GraphBuilder& builder)
      : graph_(graph), b_(builder), now_(graph.nodes.size(), kNoNode) {}

  /// A node, its operands as `now` has them; kNoNode where one is not there.
  NodeId node(const Node& node, const std::vector<NodeId>& now) {
    std::vector<NodeId> operands;
    for (const NodeId operand : node.operands) {
      operands.push_back(now[static_cast<std::size_t>(operand)]);
      if (operands.back() == kNoNode) return kNoNode;
    }
    const auto i = static_cast<std::size_t>(node.index);
    switch (node.kind) {
      case NodeKind::input:
        return b_.input(graph_.inputs[i].name, node.type, graph_.inputs[i].access);
      case NodeKind::param: return b_.param(graph_.params[i].name, node.type);
      case NodeKind::literal: return b_.literal(node.type, graph_.literals[i].bits);
      case NodeKind::constant: return b_.constant(node.type, node.bits);
      case NodeKind::index: return b_.index();
      case NodeKind::lag: return b_.lag(operands[0], node.index, operands[1]);
      case NodeKind::compute:
        return node.op == Op::convert ? b_.convert(operands[0], node.type)
                                      : b_.compute(node.op, std::move(operands));
      default: return kNoNode;
    }
  }
  void all() {
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id)
      now_[id] = node(graph_.nodes[id], now_);
  }
  [[nodiscard]] NodeId now(NodeId id) const { return now_[static_cast<std::size_t>(id)]; }
  std::vector<NodeId>& now() { return now_; }

  /// The graph's partition over the builder's parameters, and the condition that begins segments.
  std::pair<Partition, NodeId> partition() {
    Partition partition = graph_.partition;
    if (partition.size_param >= 0) {
      const GraphParam& size = graph_.params[static_cast<std::size_t>(partition.size_param)];
      partition.size_param = b_.param_index(b_.param(size.name, size.type));
    }
    std::vector<NodeId> heads;
    for (const Node& node : partition.heads) heads.push_back(this->node(node, heads));
    partition.heads.clear();
    return {std::move(partition), heads.empty() ? kNoNode : heads.back()};
  }

 private:
  const Graph& graph_;
  GraphBuilder& b_;
  std::vector<NodeId> now_;
};

/// The inputs that hold states.
std::vector<NodeId> inputs_of(const StateLayout& layout, GraphBuilder& b) {
  std::vector<NodeId> inputs;
  for (std::size_t i = 0; i < layout.fields.size(); ++i)
    inputs.push_back(b.input(fmt::format("state_{}", i), layout.fields[i].type));
  return inputs;
}

std::uint64_t mixed(std::uint64_t hash, std::string_view text) {  // FNV-1a
  constexpr std::uint64_t kPrime = 0x100000001b3;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash * kPrime;
}

}  // namespace

StateLayout state_layout(const Graph& graph) {
  check(graph);
  StateLayout layout;
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
  layout.hash = kBasis;
  const auto add = [&](std::string name, DType type, Bits init) {
    const std::int64_t size = size_of(type);
    layout.bytes = (layout.bytes + size - 1) / size * size;
    layout.hash = mixed(mixed(layout.hash, name), name_of(type));
    layout.fields.push_back(
        {.name = std::move(name), .type = type, .offset = layout.bytes, .init = init});
    layout.bytes += size;
  };
  add("rows", DType::i64, 0);
  for (const Fold& fold : graph.folds)
    for (std::size_t i = 0; i < fold.state.size(); ++i)
      add(fmt::format("{} {}", fold.name, i), fold.state[i], fold.init[i]);
  constexpr std::int64_t kWord = 8;
  layout.bytes = (layout.bytes + kWord - 1) / kWord * kWord;
  return layout;
}

Graph to_states(const Graph& graph) {
  check(graph);
  GraphBuilder b;
  Copy copy(graph, b);
  copy.all();
  std::vector<NodeId> outputs = {b.extent()};
  const std::vector<const Node*> nodes = nodes_of_folds(graph);
  for (std::size_t f = 0; f < graph.folds.size(); ++f) {
    const Fold fold = telling_states(graph.folds[f]);
    std::vector<NodeId> operands;
    for (std::size_t i = 0; i < fold.operands.size(); ++i)
      operands.push_back(copy.now(nodes[f]->operands[i]));
    const NodeId filter = nodes[f]->filter == kNoNode ? kNoNode : copy.now(nodes[f]->filter);
    for (int part = 0; part < static_cast<int>(fold.state.size()); ++part)
      outputs.push_back(b.fold(fold, operands, filter, part));
  }
  auto [partition, condition] = copy.partition();
  return b.finish(std::move(outputs), std::move(partition), condition);
}

Graph merge_states(const Graph& graph, const Partition& partition) {
  const StateLayout layout = state_layout(graph);
  GraphBuilder b;
  const std::vector<NodeId> inputs = inputs_of(layout, b);
  std::vector<NodeId> outputs = {b.sum(inputs[0])};
  const std::vector<const Node*> nodes = nodes_of_folds(graph);
  std::size_t next = 1;
  for (std::size_t f = 0; f < graph.folds.size(); ++f) {
    const Fold& fold = graph.folds[f];
    const bool indexed = has_index(graph, fold, *nodes[f]);
    const Fold merging = indexed ? of_states_with_index(fold) : of_states(fold);
    std::vector<NodeId> operands;
    if (indexed) operands.push_back(inputs[0]);
    for (std::size_t i = 0; i < fold.state.size(); ++i) operands.push_back(inputs[next++]);
    for (std::size_t part = indexed ? 1 : 0; part < merging.state.size(); ++part)
      outputs.push_back(b.fold(merging, operands, kNoNode, static_cast<int>(part)));
  }
  return b.finish(std::move(outputs), partition);
}

Graph from_states(const Graph& graph) {
  const StateLayout layout = state_layout(graph);
  GraphBuilder b;
  const std::vector<NodeId> inputs = inputs_of(layout, b);
  Copy copy(graph, b);
  std::vector<std::size_t> first;  // the first field of each fold
  std::size_t next = 1;
  for (const Fold& fold : graph.folds) {
    first.push_back(next);
    next += fold.state.size();
  }
  std::vector<NodeId>& now = copy.now();
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.node(id);
    NodeId& to = now[static_cast<std::size_t>(id)];
    if (node.kind == NodeKind::extent) {
      to = b.sum(inputs[0]);
    } else if (node.kind == NodeKind::fold) {
      const auto f = static_cast<std::size_t>(node.index);
      const Fold& fold = graph.folds[f];
      Fold finishing = of_states(fold);
      finishing.name = fold.name + ".finished";
      finishing.finalize = fold.finalize;
      finishing.given = fold.given;
      std::vector<NodeId> operands(
          inputs.begin() + static_cast<std::ptrdiff_t>(first[f]),
          inputs.begin() + static_cast<std::ptrdiff_t>(first[f] + fold.state.size()));
      for (std::size_t i = fold.operands.size(); i < node.operands.size(); ++i)
        operands.push_back(now[static_cast<std::size_t>(node.operands[i])]);
      to = b.fold(finishing, std::move(operands), kNoNode, node.part);
    } else if (node.level != Level::element) {
      to = copy.node(node, now);
    }
  }
  std::vector<NodeId> outputs;
  for (const NodeId output : graph.outputs) outputs.push_back(copy.now(output));
  return b.finish(std::move(outputs), {.kind = Partition::Kind::segments, .size = 1});
}

StateMerge::StateMerge(const Graph& graph) {
  check(graph);
  const std::vector<const Node*> nodes = nodes_of_folds(graph);
  for (std::size_t f = 0; f < graph.folds.size(); ++f) {
    const Fold& fold = graph.folds[f];
    const bool indexed = has_index(graph, fold, *nodes[f]);
    folds_.push_back({.merge = indexed ? of_states_with_index(fold).merge : fold.merge,
                      .fields = fold.state.size(),
                      .indexed = indexed});
  }
}

void StateMerge::operator()(std::span<Bits> into, std::span<const Bits> later) const {
  std::size_t at = 1;
  std::vector<Bits> arguments;
  for (const OfFold& fold : folds_) {
    arguments.clear();
    for (const std::span<const Bits> state : {std::span<const Bits>(into), later}) {
      if (fold.indexed) arguments.push_back(state[0]);
      const auto own = state.subspan(at, fold.fields);
      arguments.insert(arguments.end(), own.begin(), own.end());
    }
    const std::vector<Bits> results = evaluate(fold.merge, arguments);
    std::copy(results.begin() + (fold.indexed ? 1 : 0), results.end(),
              into.begin() + static_cast<std::ptrdiff_t>(at));
    at += fold.fields;
  }
  into[0] = evaluate(Op::add, DType::i64, DType::i64, into[0], later[0]);
}

}  // namespace chainfold::codegen
