#include "chainfold/codegen/graph/verify.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::codegen {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    fold_users_.resize(graph_.folds.size());
    folded_.assign(graph_.nodes.size(), false);
    scanned_ = extended_ = folded_;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) node(static_cast<NodeId>(i));
    for (std::size_t i = 0; i < fold_users_.size(); ++i) {
      require(!fold_users_[i].empty(), "fold {} has no node", i);
    }
    require(!graph_.outputs.empty(), "it has no output");
    for (const NodeId output : graph_.outputs) {
      require(output >= 0 && output < static_cast<NodeId>(graph_.nodes.size()),
              "output %{} does not exist", output);
      const Level level = graph_.node(output).level;
      require(level == Level::segment || (level == Level::element && scanned_[at(output)]),
              "output %{} is neither a value of a segment nor one that depends on a scan", output);
    }
    partition();
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> what, Args&&... args) const {
    if (!holds) {
      throw InternalError(
          "the graph is not valid: " + fmt::format(what, std::forward<Args>(args)...),
          print(graph_));
    }
  }

  template <class List>
  bool in(int index, const List& list) const {
    return index >= 0 && index < static_cast<int>(list.size());
  }

  void node(NodeId id) {
    const Node& n = graph_.node(id);
    for (const NodeId operand : n.operands) {
      require(operand >= 0 && operand < id, "%{} uses %{} before it is written", id, operand);
    }
    const bool folds = n.kind == NodeKind::fold || n.kind == NodeKind::scan;
    require(n.kind == NodeKind::compute || folds || n.operands.empty(),
            "%{} is a leaf with operands", id);
    require(folds || n.filter == kNoNode, "%{} is no fold but has a filter", id);
    require(n.filter == kNoNode || (n.filter >= 0 && n.filter < id),
            "%{} uses %{} before it is written", id, n.filter);
    require(n.kind == NodeKind::scan || !(n.exclusive || n.reverse),
            "%{} is no scan but has the form of one", id);
    auto mark = [&](std::vector<bool>& marks, NodeKind kind) {
      marks[at(id)] = n.kind == kind || (n.filter != kNoNode && marks[at(n.filter)]);
      for (const NodeId operand : n.operands) marks[at(id)] = marks[at(id)] || marks[at(operand)];
    };
    mark(folded_, NodeKind::fold);
    mark(scanned_, NodeKind::scan);
    mark(extended_, NodeKind::extent);
    switch (n.kind) {
      case NodeKind::input:
        leaf(id, Level::element,
             in(n.index, graph_.inputs) && graph_.inputs[at(n.index)].type == n.type);
        break;
      case NodeKind::param:
        leaf(id, Level::uniform,
             in(n.index, graph_.params) && graph_.params[at(n.index)].type == n.type);
        break;
      case NodeKind::literal:
        leaf(id, Level::uniform,
             in(n.index, graph_.literals) && graph_.literals[at(n.index)].type == n.type);
        break;
      case NodeKind::constant: leaf(id, Level::uniform, true); break;
      case NodeKind::extent: leaf(id, Level::segment, n.type == DType::i64); break;
      case NodeKind::index: leaf(id, Level::element, n.type == DType::i64); break;
      case NodeKind::field: require(false, "%{} is a field of a state", id); break;
      case NodeKind::lag: require(false, "%{} is a lag outside of a condition", id); break;
      case NodeKind::compute: compute(id, n); break;
      case NodeKind::fold:
      case NodeKind::scan: fold(id, n); break;
    }
  }

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  void leaf(NodeId id, Level level, bool listed) const {
    require(graph_.node(id).level == level, "%{} has the wrong level", id);
    require(listed, "%{} is not in its list, or has another type there", id);
  }

  void compute(NodeId id, const Node& n) const {
    require(static_cast<int>(n.operands.size()) == arity(n.op), "%{} has {} operands", id,
            n.operands.size());
    Level level = Level::uniform;
    bool element = false, folded = false, scanned = false;
    for (const NodeId operand : n.operands) {
      const Level l = graph_.node(operand).level;
      level = std::max(level, l);
      element = element || l == Level::element;
      scanned = scanned || (l == Level::element && scanned_[at(operand)]);
      folded = folded || (l == Level::segment && folded_[at(operand)]);
    }
    require(n.level == level, "%{} has the wrong level", id);
    require(!(element && folded) || scanned, "%{} mixes elements and folds", id);
    const DType in = graph_.node(n.operands.back()).type;
    if (is_cast(n.op)) {
      require(is_defined(n.op, in, n.type), "%{}: {} is no {} of {}", id, name_of(n.type),
              name_of(n.op), name_of(in));
      return;
    }
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      const DType expected = n.op == Op::select && i == 0 ? DType::boolean : in;
      require(graph_.node(n.operands[i]).type == expected, "operand {} of %{} has the wrong type",
              i, id);
    }
    require(is_defined(n.op, in), "%{}: {} is not defined on {}", id, name_of(n.op), name_of(in));
    const DType out = is_test(n.op) ? DType::boolean : in;
    require(n.type == out, "%{} has the wrong type", id);
  }

  void fold(NodeId id, const Node& n) {
    require(in(n.index, graph_.folds), "%{} names no fold", id);
    for (const NodeId other : fold_users_[at(n.index)])
      require(share_fold(n, graph_.node(other)), "%{} shares its fold with %{}", id, other);
    fold_users_[at(n.index)].push_back(id);
    const Fold& f = graph_.folds[at(n.index)];
    const Level level = n.kind == NodeKind::scan ? Level::element : Level::segment;
    require(n.part >= 0 && n.part < static_cast<int>(f.finalize.results.size()),
            "%{} is result {} of its fold, which has {}", id, n.part, f.finalize.results.size());
    require(n.part == 0 || n.kind == NodeKind::fold, "%{} scans a fold's further results", id);
    require(n.level == level && n.type == f.result(n.part), "%{} has the wrong type or level", id);
    require(n.operands.size() == f.operands.size() + f.given.size() && !n.operands.empty(),
            "%{} has {} operands", id, n.operands.size());
    bool has_elements = false;
    for (std::size_t i = 0; i < n.operands.size(); ++i) {
      const Node& operand = graph_.node(n.operands[i]);
      const bool given = i >= f.operands.size();
      const DType type = given ? f.given[i - f.operands.size()] : f.operands[i];
      require(operand.type == type && operand.level != Level::segment,
              "operand {} of %{} is not a {} of elements or the launch", i, id, name_of(type));
      require(!given || operand.level == Level::uniform, "operand {} of %{} is not the launch's", i,
              id);
      has_elements = has_elements || operand.level == Level::element;
      consumed(id, n.operands[i]);
    }
    require(has_elements, "%{} has no operand of elements", id);
    if (n.filter == kNoNode) return;
    consumed(id, n.filter);
    const Node& filter = graph_.node(n.filter);
    require(filter.type == DType::boolean && filter.level != Level::segment,
            "the filter of %{} is not a condition on elements", id);
  }

  void consumed(NodeId id, NodeId operand) const {
    require(!scanned_[at(operand)], "%{} consumes %{}, which depends on a scan", id, operand);
    require(!extended_[at(operand)], "%{} consumes %{}, which depends on the extent", id, operand);
  }

  void partition() const {
    const Partition& p = graph_.partition;
    if (p.kind == Partition::Kind::whole) {
      require(p.size == 0 && p.size_param < 0 && !p.tail,
              "a whole partition has a segment size or a tail");
      return;
    }
    require((p.kind == Partition::Kind::heads) == !p.heads.empty(),
            "heads alone have a condition, and need one");
    if (p.kind == Partition::Kind::heads) return condition(p);
    require(p.kind == Partition::Kind::segments || !p.tail, "columns or offsets have a tail");
    require((p.kind == Partition::Kind::offsets) == !p.bounds.empty(),
            "offsets alone have bounds, and need them");
    if (p.kind == Partition::Kind::offsets) {
      require(p.size == 0 && p.size_param < 0 && p.bounds.size() <= 2,
              "offsets have a size, or more than two arrays");
      for (const GraphInput& bound : p.bounds)
        require(bound.type == p.bounds[0].type &&
                    (bound.type == DType::i32 || bound.type == DType::i64),
                "bounds are not of one type, i32 or i64");
      return;
    }
    if (p.size_param >= 0) {
      require(in(p.size_param, graph_.params) && p.size == 0,
              "the segment size is no parameter of the graph");
      require(is_integer(graph_.params[at(p.size_param)].type),
              "the segment size is not an integer");
    } else {
      require(p.size >= 1, "the segment size is {}", p.size);
    }
  }

  /// Whether a node is another one or is computed from it.
  static bool reads(const std::vector<Node>& nodes, NodeId node, NodeId other) {
    if (node == other) return true;
    const std::vector<NodeId>& operands = nodes[at(node)].operands;
    return std::any_of(operands.begin(), operands.end(),
                       [&](NodeId operand) { return reads(nodes, operand, other); });
  }

  void condition(const Partition& p) const {
    std::vector<bool> lags(p.heads.size(), false);
    require(p.heads.back().type == DType::boolean, "the condition of heads is no boolean");
    for (std::size_t i = 0; i < p.heads.size(); ++i) {
      const Node& n = p.heads[i];
      const bool known = n.kind == NodeKind::input     ? in(n.index, graph_.inputs)
                         : n.kind == NodeKind::param   ? in(n.index, graph_.params)
                         : n.kind == NodeKind::literal ? in(n.index, graph_.literals)
                                                       : true;
      const bool may = n.kind == NodeKind::input || n.kind == NodeKind::param ||
                       n.kind == NodeKind::literal || n.kind == NodeKind::constant ||
                       n.kind == NodeKind::compute || n.kind == NodeKind::lag;
      require(known && may, "%{} of the condition is not in its list, or of another kind", i);
      for (const NodeId operand : n.operands)
        require(operand >= 0 && operand < static_cast<NodeId>(i),
                "%{} of the condition uses %{} before it is written", i, operand);
      require(n.kind != NodeKind::compute || static_cast<int>(n.operands.size()) == arity(n.op),
              "%{} of the condition has {} operands", i, n.operands.size());
      if (n.kind != NodeKind::lag) continue;
      require(n.operands.size() == 2 && n.index >= 1, "%{} of the condition is no lag", i);
      const Node &value = p.heads[at(n.operands[0])], &initial = p.heads[at(n.operands[1])];
      require(initial.level == Level::uniform && initial.type == n.type && value.type == n.type,
              "%{} of the condition has an initial value of another type or level", i);
      lags[i] = true;
      for (NodeId id = 0; id <= n.operands[0]; ++id)
        require(!lags[at(id)] || !reads(p.heads, n.operands[0], id),
                "%{} of the condition is a lag of a lag", i);
    }
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> fold_users_;
  std::vector<bool> folded_, scanned_, extended_;  // a node is or depends on: a fold, scan, extent
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace chainfold::codegen
