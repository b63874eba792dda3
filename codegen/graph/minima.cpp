// Minima and maxima of floats by the order of integers.
//
// Positive numbers are ordered as their bits are, negative ones the other way round. So three folds
// of the elements' bits give both extremes: the least and the greatest as unsigned integers, and
// the greatest as signed ones. The smallest number is the greatest unsigned one if any number is
// negative, else the least unsigned one. The largest number is the greatest signed one, unless all
// are negative: then it is the least unsigned one. A NaN is beyond an infinity in the greatest
// unsigned or the greatest signed one, by its sign. Each fold takes one operation an element, and a
// minimum and a maximum of the same elements share all three. An element needs no conversion, no
// look at NaN and none at the signs of zeros.
//
// What is smallest or largest so far is one scan instead, of keys. Keys are integers in the
// numbers' order, as sign and magnitude would be in two's complement. They are moved so that NaN
// are at the end that wins and an infinity is the key of nothing. A key takes four operations an
// element and as many back, where a scan takes one for each of its steps.
//
// Before: a graph. After: for a target whose `integer_order` is set, the same graph with some folds
// and scans computed from those of integers. These are folds by min.f32 and max.f32 of f16, of
// bf16, and of f32 where both are folded. Of scans they are those of f16 and bf16.
#include "chainfold/codegen/graph/minima.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/graph/verify.hpp"

namespace chainfold::codegen {

namespace {

constexpr std::string_view kSmallest = "min.f32", kLargest = "max.f32";

class Rewriter {
 public:
  explicit Rewriter(const Graph& graph)
      : from_(graph), now_(graph.nodes.size(), kNoNode), halves_(graph.nodes.size(), kNoNode) {
    to_ = graph;
    to_.nodes.clear();
    to_.folds.clear();
  }

  Graph run() {
    to_.written = output_expressions(from_);
    for (std::size_t id = 0; id < from_.nodes.size(); ++id) now_[id] = place(id);
    for (NodeId& output : to_.outputs) output = now_[static_cast<std::size_t>(output)];
    drop_unused();
    return std::move(to_);
  }

 private:
  /// Conversions that nothing reads any more.
  void drop_unused() {
    std::vector<bool> used(to_.nodes.size());
    for (const NodeId output : to_.outputs) used[static_cast<std::size_t>(output)] = true;
    for (std::size_t id = used.size(); id-- > 0;) {
      if (!used[id]) continue;
      const Node& node = to_.nodes[id];
      for (const NodeId operand : node.operands) used[static_cast<std::size_t>(operand)] = true;
      if (node.filter != kNoNode) used[static_cast<std::size_t>(node.filter)] = true;
    }
    std::vector<NodeId> renamed(used.size(), kNoNode);
    std::vector<Node> kept;
    for (std::size_t id = 0; id < used.size(); ++id) {
      if (!used[id]) continue;
      Node& node = to_.nodes[id];
      for (NodeId& operand : node.operands) operand = renamed[static_cast<std::size_t>(operand)];
      if (node.filter != kNoNode) node.filter = renamed[static_cast<std::size_t>(node.filter)];
      renamed[id] = static_cast<NodeId>(kept.size());
      kept.push_back(std::move(node));
    }
    to_.nodes = std::move(kept);
    for (NodeId& output : to_.outputs) output = renamed[static_cast<std::size_t>(output)];
  }

  NodeId place(std::size_t id) {
    Node node = from_.nodes[id];
    const NodeId operand = node.operands.empty() ? kNoNode : node.operands[0];
    for (NodeId& of : node.operands) of = now_[static_cast<std::size_t>(of)];
    if (node.filter != kNoNode) node.filter = now_[static_cast<std::size_t>(node.filter)];
    if (node.kind == NodeKind::fold || node.kind == NodeKind::scan) {
      const Fold& fold = from_.folds[static_cast<std::size_t>(node.index)];
      const bool largest = fold.name == kLargest;
      if (largest || fold.name == kSmallest) {
        const bool half = half_of(node.operands[0]) != kNoNode;
        const bool scanned = is_scanned(from_, node.index);
        if (scanned && half) return by_keys(id, std::move(node), largest);
        if (!scanned && (half || has_both(id)))
          return extremum(id, node.operands[0], node.filter, largest);
      }
      const auto [at, is_new] = kept_.try_emplace(node.index, static_cast<int>(to_.folds.size()));
      if (is_new) to_.folds.push_back(fold);
      node.index = at->second;
    }
    // Back to the 16 bits that it was widened from.
    if (node.kind == NodeKind::compute && node.op == Op::convert) {
      const NodeId half = halves_[static_cast<std::size_t>(operand)];
      if (half != kNoNode && to_.node(half).type == node.type) return half;
    }
    return add(std::move(node));
  }

  /// The f16 or bf16 value that this one is widened from.
  [[nodiscard]] NodeId half_of(NodeId value) const {
    const Node& wide = to_.node(value);
    if (wide.kind != NodeKind::compute || wide.op != Op::convert) return kNoNode;
    const DType type = to_.node(wide.operands[0]).type;
    return type == DType::f16 || type == DType::bf16 ? wide.operands[0] : kNoNode;
  }

  /// Whether both the smallest and the largest of the same values are folded. Of one alone, f32's
  /// own minimum is no more work than three of integers.
  [[nodiscard]] bool has_both(std::size_t id) const {
    const Node& one = from_.nodes[id];
    auto name = [&](const Node& node) -> const std::string& {
      return from_.folds[static_cast<std::size_t>(node.index)].name;
    };
    return std::any_of(from_.nodes.begin(), from_.nodes.end(), [&](const Node& other) {
      return other.kind == NodeKind::fold && other.operands == one.operands &&
             other.filter == one.filter && name(other) != name(one) &&
             (name(other) == kSmallest || name(other) == kLargest) &&
             !is_scanned(from_, other.index);
    });
  }

  /// The smallest or largest of f32 values: as f32 too, and in halves_ as what they were widened
  /// from.
  NodeId extremum(std::size_t id, NodeId value, NodeId filter, bool largest) {
    const NodeId narrow = half_of(value);
    const bool half = narrow != kNoNode;
    if (half) value = narrow;
    const DType type = to_.node(value).type;
    const DType plain = half ? DType::u16 : DType::u32, with_sign = half ? DType::i16 : DType::i32;
    const NodeId bits = cast(Op::reinterpret, value, plain);
    const NodeId low = fold(make_min(plain), bits, filter);
    const NodeId high = fold(make_max(plain), bits, filter);
    const NodeId top = fold(make_max(with_sign), cast(Op::reinterpret, value, with_sign), filter);

    const Bits infinity = bits_of_double(type, std::numeric_limits<double>::infinity());
    const Bits minus_infinity = bits_of_double(type, -std::numeric_limits<double>::infinity());
    const Bits nan = bits_of_double(type, std::numeric_limits<double>::quiet_NaN());
    auto number = [&](Bits value_bits) { return constant(plain, value_bits); };
    const NodeId is_nan =
        compute(Op::bit_or, DType::boolean,
                {compute(Op::gt, DType::boolean, {top, constant(with_sign, infinity)}),
                 compute(Op::gt, DType::boolean, {high, number(minus_infinity)})});
    const NodeId nothing = compute(Op::gt, DType::boolean, {low, high});
    const NodeId none = constant(with_sign, 0);
    NodeId found = kNoNode;
    if (largest) {
      const NodeId all_signed = compute(Op::lt, DType::boolean, {top, none});
      found = compute(Op::select, plain, {all_signed, low, cast(Op::reinterpret, top, plain)});
    } else {
      const NodeId any_signed =
          compute(Op::lt, DType::boolean, {cast(Op::reinterpret, high, with_sign), none});
      found = compute(Op::select, plain, {any_signed, high, low});
    }
    found =
        compute(Op::select, plain, {nothing, number(largest ? minus_infinity : infinity), found});
    found = compute(Op::select, plain, {is_nan, number(nan), found});
    const NodeId result = cast(Op::reinterpret, found, type);
    if (half) halves_[id] = result;
    return half ? cast(Op::convert, result, DType::f32) : result;
  }

  /// The smallest or largest so far of f16 or bf16 values, from one scan of keys, and that of the
  /// segment, from the scan's state.
  NodeId by_keys(std::size_t id, Node scan, bool largest) {
    const NodeId value = half_of(scan.operands[0]);
    const DType type = to_.node(value).type, in = DType::i16;
    // The key of an infinity is that of no elements, and those of NaN are at the other end.
    const Bits infinity = bits_of_double(type, std::numeric_limits<double>::infinity());
    const NodeId shift = constant(in, 0x7fff - infinity);
    const Op there = largest ? Op::sub : Op::add, back = largest ? Op::add : Op::sub;
    scan.operands = {compute(there, in, {in_order(cast(Op::reinterpret, value, in)), shift})};
    scan.type = in;
    const auto [at, is_new] = kept_.try_emplace(scan.index, static_cast<int>(to_.folds.size()));
    if (is_new) to_.folds.push_back(largest ? make_max(in) : make_min(in));
    scan.index = at->second;
    const NodeId found = in_order(compute(back, in, {add(std::move(scan)), shift}));
    halves_[id] = cast(Op::reinterpret, found, type);
    return cast(Op::convert, halves_[id], DType::f32);
  }

  /// Bits of numbers as integers in their order, and back: of negative ones all but the sign
  /// change.
  NodeId in_order(NodeId bits) {
    const DType in = to_.node(bits).type;
    const NodeId sign = compute(Op::shr, in, {bits, constant(in, 15)});
    const NodeId rest = compute(Op::bit_and, in, {sign, constant(in, 0x7fff)});
    return compute(Op::bit_xor, in, {bits, rest});
  }

  NodeId fold(Fold fold, NodeId operand, NodeId filter) {
    const auto [at, is_new] = folds_.try_emplace({fold.name, operand, filter}, kNoNode);
    if (!is_new) return at->second;
    Node node;
    node.kind = NodeKind::fold;
    node.type = fold.result();
    node.level = Level::segment;
    node.index = static_cast<int>(to_.folds.size());
    node.operands = {operand};
    node.filter = filter;
    to_.folds.push_back(std::move(fold));
    return at->second = add(std::move(node));
  }

  NodeId constant(DType type, Bits bits) {
    Node node;  // of its default kind
    node.type = type;
    node.bits = bits;
    return add(std::move(node));
  }
  NodeId cast(Op op, NodeId value, DType type) { return compute(op, type, {value}); }
  NodeId compute(Op op, DType type, std::vector<NodeId> operands) {
    Node node;
    node.kind = NodeKind::compute;
    node.type = type;
    node.op = op;
    for (const NodeId operand : operands)
      node.level = std::max(node.level, to_.node(operand).level);
    node.operands = std::move(operands);
    return add(std::move(node));
  }

  NodeId add(Node node) {
    // Folds are told apart from other folds by their list entries, and so are scans.
    const auto [at, is_new] = known_.try_emplace(
        Key{node.kind, node.type, node.op, node.index, node.bits, node.operands, node.filter},
        static_cast<NodeId>(to_.nodes.size()));
    if (is_new) to_.nodes.push_back(std::move(node));
    return at->second;
  }

  using Key = std::tuple<NodeKind, DType, Op, int, Bits, std::vector<NodeId>, NodeId>;

  const Graph& from_;
  Graph to_;
  std::vector<NodeId> now_;     // one a node of from_: what stands for it
  std::vector<NodeId> halves_;  // of an extremum of f16 or bf16: what it is widened from
  std::map<int, int> kept_;     // of folds that stay one: where they are now
  std::map<std::tuple<std::string, NodeId, NodeId>, NodeId> folds_;
  std::map<Key, NodeId> known_;
};

}  // namespace

Graph with_integer_minima(const Graph& graph) {
  const bool any = std::any_of(graph.folds.begin(), graph.folds.end(), [](const Fold& fold) {
    return fold.name == kSmallest || fold.name == kLargest;
  });
  if (!any) return graph;
  Graph made = Rewriter(graph).run();
  verify(made);
  return made;
}

}  // namespace chainfold::codegen
