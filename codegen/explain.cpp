// explain_graph and print_expression: what the compiler will do, told to people.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan/published.hpp"

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

/// The constant matrices of each fold, and why it has them or none.
std::string matrices(const Graph& graph, const Plan& plan, const Target& target) {
  std::string text;
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const FoldPlan& how = plan.folds[f];
    const std::string& name = graph.folds[f].name;
    if (how.unit == Unit::simt) {
      std::string reason = "the fold is no sum";
      const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) {
        return n.kind == NodeKind::fold && static_cast<std::size_t>(n.index) == f;
      });
      if (is_scanned(graph, static_cast<int>(f))) {
        reason = "it is a scan, which the plan leaves to lanes";
      } else if (graph.folds[f].linear) {
        const MmaOperands data = mma_operands(graph, *node);
        if (!target.has_mma) {
          reason = "the target has no matrix instructions";
        } else if (node->filter != kNoNode) {
          reason = "the sum is filtered";
        } else if (data.a == kNoNode) {
          reason = "its operand is not an input or a product of two inputs of one type";
        } else {
          reason = "no instruction takes this type exactly, or its loads do not fill a fragment";
        }
      }
      text += fmt::format("  fold {} ({}): none, lanes add by themselves: {}\n", f, name, reason);
      continue;
    }
    const MmaRow& row = mma_table()[static_cast<std::size_t>(how.mma_row)];
    const bool small = plan.shares_quads();
    if (is_published_scan(plan.strategy)) {
      text += fmt::format(
          "  fold {} ({}): squares times U = {} in {}, and L = {} times squares where "
          "rows follow each other\n",
          f, name, print(ConstMatrix{.kind = MatrixKind::upper}), row.name,
          print(ConstMatrix{.kind = MatrixKind::strict_lower}));
    } else if (how.unit == Unit::mma_scan) {
      text += fmt::format(
          "  fold {} ({}): data times U = {} in {}; a {}-byte load is operand A as it comes, "
          "columns "
          "of U are permuted so that D holds the prefixes of a lane's own elements within its "
          "quad\n",
          f, name, print(ConstMatrix{.kind = MatrixKind::upper, .load_width = plan.load_width}),
          row.name, plan.load_width * size_of(row.input));
    } else if (how.unit == Unit::mma_diagonal) {
      text += fmt::format(
          "  fold {} ({}): {} with data as both operands; the diagonal of D holds each quad's sum "
          "of products\n",
          f, name, row.name);
    } else {
      const ConstMatrix matrix{.kind = small ? MatrixKind::segments : MatrixKind::ones,
                               .parameter = small ? plan.lanes_per_segment * plan.load_width : 0,
                               .load_width = plan.load_width};
      text += fmt::format(
          "  fold {} ({}): P = {} times data in {}; columns of P permuted to the order of a "
          "{}-byte load, so the data is used as it comes\n",
          f, name, print(matrix), row.name, plan.load_width * size_of(row.input));
    }
  }
  return text;
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
  } else {
    text += p.kind == Partition::Kind::columns ? "columns(" : "segments(";
    text += (p.size > 0 ? std::to_string(p.size)
                        : graph.params[static_cast<std::size_t>(p.size_param)].name);
    text += p.tail ? ", partial tail)" : ")";
  }
  for (const std::string& output : output_expressions(graph)) text += ", " + output;
  return text + ")";
}

std::string explain_graph(const Graph& graph, const Target& target, const Compiled& compiled,
                          const Source& source) {
  int read = 0;
  int written[2] = {0, 0};  // a segment, an element
  for (const GraphInput& input : graph.inputs) read += size_of(input.type);
  for (NodeId output : graph.outputs) {
    const Node& node = graph.node(output);
    written[node.level == Level::element ? 1 : 0] += size_of(node.type);
  }
  std::string text = fmt::format("expression\n  {}\n\ntarget\n  {}\n\n{}\n",
                                 print_expression(graph), target.name, print(graph));
  text += print(compiled.plan, graph);
  text += "\nmatrices\n" + matrices(graph, compiled.plan, target);
  text += fmt::format("\ntraffic\n  {} bytes read an element", read);
  if (written[1] > 0) text += fmt::format(", {} bytes written an element", written[1]);
  if (written[0] > 0) text += fmt::format(", {} bytes written a segment", written[0]);
  text += "\n";
  text += fmt::format("\n{}\nsource\n{}", print(compiled.program), source.kernels);
  return text;
}

}  // namespace chainfold::codegen
