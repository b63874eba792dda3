#include "chainfold/codegen/graph/builder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {
namespace {

/// FNV-1a: the same on every machine, because the order of operands, and so the text of a graph,
/// depends on it.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Op mirrored(Op op) {
  switch (op) {
    case Op::lt: return Op::gt;
    case Op::le: return Op::ge;
    case Op::gt: return Op::lt;
    case Op::ge: return Op::le;
    default: return op;
  }
}

}  // namespace

NodeId GraphBuilder::add(Node node) {
  auto& literal_types = graph_.literals;
  const std::string_view label =
      node.kind == NodeKind::input
          ? std::string_view(graph_.inputs[static_cast<std::size_t>(node.index)].name)
      : node.kind == NodeKind::param
          ? std::string_view(graph_.params[static_cast<std::size_t>(node.index)].name)
      : node.kind == NodeKind::fold || node.kind == NodeKind::scan
          ? std::string_view(graph_.folds[static_cast<std::size_t>(node.index)].name)
          : std::string_view();
  const bool is_literal = node.kind == NodeKind::literal;
  auto head = fmt::format("{} {} {} {} ", static_cast<int>(node.kind), name_of(node.type),
                          name_of(node.op), node.bits);
  if (node.kind == NodeKind::lag) head += fmt::format("lag {} ", node.index);
  if (node.kind == NodeKind::field) head += fmt::format("field {} ", node.index);
  if (node.kind == NodeKind::scan) head += fmt::format("{:d}{:d} ", node.exclusive, node.reverse);
  if (node.part != 0) head += fmt::format("part {} ", node.part);
  std::string key = head, shape = head;
  if (is_literal) {
    key += std::to_string(literal_types[static_cast<std::size_t>(node.index)].bits);
  }
  for (const NodeId operand : node.operands) {
    key += fmt::format("%{} ", operand);
    shape += fmt::format("{:x} ", shapes_[static_cast<std::size_t>(operand)]);
  }
  if (node.filter != kNoNode) {
    key += fmt::format("where %{} ", node.filter);
    shape += fmt::format("where {:x} ", shapes_[static_cast<std::size_t>(node.filter)]);
  }
  key += label;
  shape += label;
  const auto [at, is_new] =
      known_.try_emplace(std::move(key), static_cast<NodeId>(graph_.nodes.size()));
  if (is_new) {
    std::uint32_t kinds = 1U << static_cast<int>(node.kind);
    for (const NodeId operand : node.operands) kinds |= depends_[static_cast<std::size_t>(operand)];
    if (node.filter != kNoNode) kinds |= depends_[static_cast<std::size_t>(node.filter)];
    depends_.push_back(kinds);
    graph_.nodes.push_back(std::move(node));
    shapes_.push_back(hash_of(shape));
  }
  return at->second;
}

bool GraphBuilder::is_constant(NodeId id, Bits bits) const {
  return graph_.node(id).kind == NodeKind::constant && graph_.node(id).bits == bits;
}

/// The order of commutative operands: what varies fastest first, then inputs by name, fields by
/// number, others by their trees. Literals' values have no part in it, so that they cannot change
/// the graph's text.
bool GraphBuilder::before(NodeId a, NodeId b) const {
  const Node &x = graph_.node(a), &y = graph_.node(b);
  auto rank = [](NodeKind kind) {
    switch (kind) {
      case NodeKind::compute:
      case NodeKind::lag: return 0;
      case NodeKind::fold:
      case NodeKind::scan: return 1;
      case NodeKind::extent:
      case NodeKind::index:
      case NodeKind::field: return 2;
      case NodeKind::input: return 3;
      case NodeKind::param: return 4;
      case NodeKind::literal: return 5;
      case NodeKind::constant: return 6;
    }
    return 7;
  };
  if (x.level != y.level) return x.level > y.level;
  if (x.kind != y.kind) return rank(x.kind) < rank(y.kind);
  if (x.kind == NodeKind::input) {
    return graph_.inputs[static_cast<std::size_t>(x.index)].name <
           graph_.inputs[static_cast<std::size_t>(y.index)].name;
  }
  if (x.kind == NodeKind::field) return x.index < y.index;
  const auto shape_a = shapes_[static_cast<std::size_t>(a)],
             shape_b = shapes_[static_cast<std::size_t>(b)];
  return std::pair(shape_a, a) < std::pair(shape_b, b);
}

// --- leaves

namespace {
[[noreturn]] void refuse_bound(const std::string& name) {
  throw UserError(ErrorCode::duplicate_input,
                  fmt::format("\"{}\" is declared twice, and once by cf::offsets: what tells where "
                              "segments begin and end has a name of its own",
                              name),
                  name);
}
}  // namespace

NodeId GraphBuilder::name(NodeKind kind, std::string_view name, DType type, InputAccess access) {
  auto word = [](NodeKind k) { return k == NodeKind::input ? "input" : "param"; };
  if (name.empty()) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("cf::{}<{}> has an empty name; give it one, e.g. \"x\"", word(kind),
                                cpp_name_of(type)));
  }
  auto conflict = [&](NodeKind other, DType other_type) {
    throw UserError(
        ErrorCode::duplicate_input,
        fmt::format("\"{0}\" is declared twice, as {1}<{2}> and as {3}<{4}>; use one "
                    "type, or another name",
                    name, word(other), cpp_name_of(other_type), word(kind), cpp_name_of(type)),
        std::string(name));
  };
  const bool is_input = kind == NodeKind::input;
  for (const GraphInput& known : graph_.partition.bounds)
    if (known.name == name) refuse_bound(known.name);
  int index = -1;
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    const GraphInput& known = graph_.inputs[i];
    if (known.name != name) continue;
    if (!is_input || known.type != type) conflict(NodeKind::input, known.type);
    if (known.access != access) {
      throw UserError(ErrorCode::duplicate_input,
                      fmt::format("\"{}\" is declared twice, once with cf::as_bits and once "
                                  "without; declare it alike, or use another name",
                                  name),
                      std::string(name));
    }
    index = static_cast<int>(i);
  }
  for (std::size_t i = 0; i < graph_.params.size(); ++i) {
    const GraphParam& known = graph_.params[i];
    if (known.name != name) continue;
    if (is_input || known.type != type) conflict(NodeKind::param, known.type);
    index = static_cast<int>(i);
  }
  if (index < 0) {
    index = static_cast<int>(is_input ? graph_.inputs.size() : graph_.params.size());
    if (is_input) {
      graph_.inputs.push_back({std::string(name), type, access});
    } else {
      graph_.params.push_back({std::string(name), type});
    }
  }
  Node node;
  node.kind = kind;
  node.type = type;
  node.level = is_input ? Level::element : Level::uniform;
  node.index = index;
  return add(std::move(node));
}

GraphInput GraphBuilder::bound(std::string_view text, DType type) {
  if (text.empty()) {
    throw UserError(ErrorCode::invalid_argument,
                    "cf::offsets has an empty name; give it one, e.g. \"row_ptr\"");
  }
  for (const GraphInput& known : graph_.partition.bounds)
    if (known.name == text) refuse_bound(known.name);
  for (const GraphInput& known : graph_.inputs)
    if (known.name == text) refuse_bound(known.name);
  for (const GraphParam& known : graph_.params)
    if (known.name == text) refuse_bound(known.name);
  GraphInput bound{std::string(text), type};
  graph_.partition.bounds.push_back(bound);
  return bound;
}

NodeId GraphBuilder::input(std::string_view text, DType type, InputAccess access) {
  return name(NodeKind::input, text, type, access);
}
NodeId GraphBuilder::param(std::string_view text, DType type) {
  return name(NodeKind::param, text, type);
}

NodeId GraphBuilder::literal(DType type, Bits bits) {
  const bool common = type == DType::boolean || bits == bits_of_int(type, 0) ||
                      bits == bits_of_int(type, 1) ||
                      (is_signed(type) && bits == bits_of_int(type, -1));
  if (common) return constant(type, bits);
  Node node;
  node.kind = NodeKind::literal;
  node.type = type;
  for (; node.index < static_cast<int>(graph_.literals.size()); ++node.index) {
    const GraphLiteral& known = graph_.literals[static_cast<std::size_t>(node.index)];
    if (known.type == type && known.bits == bits) return add(std::move(node));
  }
  graph_.literals.push_back({type, bits});
  return add(std::move(node));
}

NodeId GraphBuilder::constant(DType type, Bits bits) {
  Node node;
  node.type = type;
  node.bits = bits;
  return add(std::move(node));
}

NodeId GraphBuilder::extent() {
  Node node;
  node.kind = NodeKind::extent;
  node.level = Level::segment;
  return add(std::move(node));
}

NodeId GraphBuilder::index() {
  Node node;
  node.kind = NodeKind::index;
  node.level = Level::element;
  return add(std::move(node));
}

NodeId GraphBuilder::lag(NodeId value, int distance, NodeId initial) {
  if (distance < 1) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("a lag of {} elements; it is at least 1", distance));
  }
  if (depends(value, NodeKind::lag)) {
    throw UserError(ErrorCode::unsupported,
                    "a lag of a lag is not supported yet; write one of both distances together");
  }
  Node node;
  node.kind = NodeKind::lag;
  node.type = type(value);
  node.level = Level::element;
  node.index = distance;
  node.operands = {value, initial};
  return add(std::move(node));
}

NodeId GraphBuilder::field(int index, DType type) {
  Node node;
  node.kind = NodeKind::field;
  node.type = type;
  node.level = Level::state;
  node.index = index;
  return add(std::move(node));
}

// --- operations

NodeId GraphBuilder::compute(Op op, std::vector<NodeId> operands) {
  if (is_cast(op) || static_cast<int>(operands.size()) != arity(op)) {
    throw InternalError(fmt::format("compute({}) with {} operands", name_of(op), operands.size()));
  }
  Node node;
  node.kind = NodeKind::compute;
  const DType in = type(operands.back());
  bool constants = true, has_element = false, has_folded = false, has_scanned = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Node& operand = graph_.node(operands[i]);
    const DType expected = op == Op::select && i == 0 ? DType::boolean : in;
    if (operand.type != expected) {
      throw UserError(ErrorCode::type_mismatch,
                      fmt::format("operand {} of {} is {}, not {}; cast it", i + 1, name_of(op),
                                  cpp_name_of(operand.type), cpp_name_of(expected)));
    }
    constants = constants && operand.kind == NodeKind::constant;
    has_element = has_element || operand.level == Level::element;
    has_scanned =
        has_scanned || (operand.level == Level::element && depends(operands[i], NodeKind::scan));
    has_folded =
        has_folded || (operand.level == Level::segment && depends(operands[i], NodeKind::fold));
    node.level = std::max(node.level, operand.level);
  }
  if (!is_defined(op, in)) {
    throw UserError(ErrorCode::type_mismatch,
                    fmt::format("{} is not defined on {}; cast its operands to a type "
                                "that has it",
                                name_of(op), cpp_name_of(in)));
  }
  // A segment's fold is broadcast to its elements beside a scan: elsewhere nothing would serve it
  // yet.
  if (has_element && has_folded && !has_scanned) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("{} takes a value of each element and a value of the segment; a fold "
                    "can be broadcast back to the elements only beside a scan",
                    name_of(op)));
  }
  node.type = is_test(op) ? DType::boolean : in;
  if (constants) {
    Bits bits[3] = {};
    for (std::size_t i = 0; i < operands.size(); ++i) bits[i] = graph_.node(operands[i]).bits;
    return constant(node.type, evaluate(op, in, node.type, bits[0], bits[1], bits[2]));
  }
  if ((is_commutative(op) || is_comparison(op)) && before(operands[1], operands[0])) {
    std::swap(operands[0], operands[1]);
    op = mirrored(op);
  }
  if (op == Op::fma && before(operands[1], operands[0])) std::swap(operands[0], operands[1]);
  node.op = op;
  node.operands = std::move(operands);
  return add(std::move(node));
}

NodeId GraphBuilder::convert(NodeId value, DType to) {
  const Node& from = graph_.node(value);
  if (from.type == to) return value;
  if (from.kind == NodeKind::constant)
    return constant(to, evaluate(Op::convert, from.type, to, from.bits));
  const bool chained = from.kind == NodeKind::compute && from.op == Op::convert;
  if (chained && widens(type(from.operands[0]), from.type)) return convert(from.operands[0], to);
  Node node;
  node.kind = NodeKind::compute;
  node.op = Op::convert;
  node.type = to;
  node.level = from.level;
  node.operands = {value};
  return add(std::move(node));
}

NodeId GraphBuilder::fold(Fold fold, std::vector<NodeId> operands, NodeId filter, int part) {
  Node node;
  node.kind = NodeKind::fold;
  node.part = part;
  node.level = Level::segment;
  return fold_node(std::move(node), std::move(fold), std::move(operands), filter);
}

NodeId GraphBuilder::scan(Fold fold, std::vector<NodeId> operands, ScanForm form, NodeId filter) {
  Node node;
  node.kind = NodeKind::scan;
  node.level = Level::element;
  node.exclusive = form.exclusive;
  node.reverse = form.reverse;
  return fold_node(std::move(node), std::move(fold), std::move(operands), filter);
}

NodeId GraphBuilder::fold_node(Node node, Fold fold, std::vector<NodeId> operands, NodeId filter) {
  std::vector<DType> types = fold.operands;
  types.insert(types.end(), fold.given.begin(), fold.given.end());
  if (operands.size() != types.size()) {
    throw InternalError(fmt::format("{} with {} operands", fold.name, operands.size()));
  }
  const auto is_of_launch = [this](NodeId id) { return level(id) == Level::uniform; };
  const bool has_elements = !std::all_of(
      operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(fold.operands.size()),
      is_of_launch);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (type(operands[i]) != types[i]) {
      throw UserError(ErrorCode::type_mismatch,
                      fmt::format("operand {} of {} is {}, not {}; cast it", i + 1, fold.name,
                                  cpp_name_of(type(operands[i])), cpp_name_of(types[i])));
    }
    if (i >= fold.operands.size() && !is_of_launch(operands[i])) {
      throw UserError(ErrorCode::unsupported,
                      fmt::format("operand {} of {} is one value for the launch: a number, or an "
                                  "expression of parameters",
                                  i + 1, fold.name));
    }
    if (level(operands[i]) != Level::element && !(has_elements && is_of_launch(operands[i]))) {
      throw UserError(
          ErrorCode::unsupported,
          fmt::format("{} is given one value a {}; it folds an expression of the inputs", fold.name,
                      level(operands[i]) == Level::segment ? "segment" : "launch"));
    }
  }
  if (filter != kNoNode) {
    if (type(filter) != DType::boolean || level(filter) == Level::segment) {
      throw UserError(
          ErrorCode::type_mismatch,
          fmt::format("the filter of {} must be a condition on the elements", fold.name));
    }
    if (is_constant(filter, 1)) filter = kNoNode;
  }
  std::vector<NodeId> consumed = operands;
  if (filter != kNoNode) consumed.push_back(filter);
  for (const NodeId id : consumed) {
    if (depends(id, NodeKind::scan)) {
      throw UserError(
          ErrorCode::unsupported,
          fmt::format("{} is given a value that depends on a scan; a fold or a scan of a scan is "
                      "not supported: make the inner scan an output and fold it with a kernel of "
                      "its own",
                      fold.name));
    }
    if (depends(id, NodeKind::extent)) {
      throw UserError(
          ErrorCode::unsupported,
          fmt::format("{} is given a value that depends on the number of elements of the segment, "
                      "cf::count(); give that number as a parameter instead",
                      fold.name));
    }
  }
  node.type = fold.result(node.part);
  node.operands = std::move(operands);
  node.filter = filter;
  node.index = static_cast<int>(graph_.folds.size());
  graph_.folds.push_back(std::move(fold));
  const auto nodes = graph_.nodes.size();
  const NodeId id = add(std::move(node));
  if (graph_.nodes.size() == nodes) graph_.folds.pop_back();  // known already
  return id;
}

}  // namespace chainfold::codegen
