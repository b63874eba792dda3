#include "chainfold/codegen/graph/expression.hpp"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

namespace {

const char* infix(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::sub: return "-";
    case Op::mul: return "*";
    case Op::div: return "/";
    case Op::rem: return "%";
    case Op::bit_and: return "&";
    case Op::bit_or: return "|";
    case Op::bit_xor: return "^";
    case Op::shl: return "<<";
    case Op::shr: return ">>";
    case Op::eq: return "==";
    case Op::ne: return "!=";
    case Op::lt: return "<";
    case Op::le: return "<=";
    case Op::gt: return ">";
    case Op::ge: return ">=";
    default: return nullptr;
  }
}

bool is_nan(const Node& node) {
  return node.kind == NodeKind::constant && is_float(node.type) &&
         std::isnan(double_of_bits(node.type, node.bits));
}

std::string expression(const Graph& graph, NodeId id, bool top) {
  const Node& node = graph.node(id);
  auto list = [&](const std::vector<NodeId>& operands) {
    std::string text;
    for (NodeId operand : operands)
      text += (text.empty() ? "" : ", ") + expression(graph, operand, true);
    return text;
  };
  switch (node.kind) {
    case NodeKind::input: return graph.inputs[static_cast<std::size_t>(node.index)].name;
    case NodeKind::param: return graph.params[static_cast<std::size_t>(node.index)].name;
    case NodeKind::literal: {
      const GraphLiteral& literal = graph.literals[static_cast<std::size_t>(node.index)];
      return text_of_bits(literal.type, literal.bits);
    }
    case NodeKind::constant: return text_of_bits(node.type, node.bits);
    case NodeKind::extent: return "count()";
    case NodeKind::index: return "index()";
    case NodeKind::field: return "field " + std::to_string(node.index);
    case NodeKind::lag:
      return fmt::format("lag({}, {}, {})", expression(graph, node.operands[0], true), node.index,
                         expression(graph, node.operands[1], true));
    case NodeKind::fold:
    case NodeKind::scan: {
      const std::string& name = graph.folds[static_cast<std::size_t>(node.index)].name;
      std::string text = name.substr(0, name.find('.')) + "(" + list(node.operands);
      if (node.filter != kNoNode) text += ", where(" + expression(graph, node.filter, true) + ")";
      text += ")";
      if (node.kind == NodeKind::fold) return text;
      return std::string(node.exclusive ? "exclusive(" : "inclusive(") + text +
             (node.reverse ? ", backward)" : ")");
    }
    case NodeKind::compute: break;
  }
  if (node.op == Op::select && is_nan(graph.node(node.operands[1])))
    return expression(graph, node.operands[2], top);  // what is NaN of nothing, like a mean
  if (node.op == Op::convert)
    return std::string(name_of(node.type)) + "(" + list(node.operands) + ")";
  if (const char* symbol = infix(node.op)) {
    const std::string text = expression(graph, node.operands[0], false) + " " + symbol + " " +
                             expression(graph, node.operands[1], false);
    return top ? text : "(" + text + ")";
  }
  return std::string(name_of(node.op)) + "(" + list(node.operands) + ")";
}

}  // namespace

std::vector<std::string> output_expressions(const Graph& graph) {
  if (!graph.written.empty()) return graph.written;
  std::vector<std::string> texts;
  for (const NodeId output : graph.outputs) texts.push_back(expression(graph, output, true));
  return texts;
}

std::string print_expression(const Graph& graph) {
  std::string text = "over(";
  const Partition& p = graph.partition;
  if (p.kind == Partition::Kind::whole) {
    text += "whole()";
  } else if (p.kind == Partition::Kind::heads) {
    Graph condition = graph;
    condition.nodes = p.heads;
    text += "heads(" + expression(condition, static_cast<NodeId>(p.heads.size()) - 1, true) + ")";
  } else if (p.kind == Partition::Kind::offsets) {
    text += "offsets(" + p.bounds[0].name;
    if (p.bounds.size() > 1) text += ", " + p.bounds[1].name;
    text += ")";
  } else {
    text += p.kind == Partition::Kind::columns ? "columns(" : "segments(";
    text += (p.size > 0 ? std::to_string(p.size)
                        : graph.params[static_cast<std::size_t>(p.size_param)].name);
    text += p.tail ? ", partial tail)" : ")";
  }
  for (const std::string& output : output_expressions(graph)) text += ", " + output;
  return text + ")";
}

}  // namespace chainfold::codegen
