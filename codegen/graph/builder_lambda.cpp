// GraphBuilder::lambda: what was written in nodes over fields, as a Lambda.
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

Lambda GraphBuilder::lambda(std::string_view what, std::vector<DType> params,
                            const std::vector<NodeId>& results) const {
  std::vector<bool> needed(graph_.nodes.size(), false);
  for (NodeId result : results) needed[static_cast<std::size_t>(result)] = true;
  for (std::size_t id = needed.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (NodeId operand : graph_.nodes[id].operands)
      needed[static_cast<std::size_t>(operand)] = true;
  }
  Lambda lambda;
  lambda.params = std::move(params);
  std::vector<int> values(graph_.nodes.size(), -1);
  for (std::size_t id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    const Node& node = graph_.nodes[id];
    std::vector<int> operands;
    for (NodeId operand : node.operands)
      operands.push_back(values[static_cast<std::size_t>(operand)]);
    switch (node.kind) {
      case NodeKind::field: values[id] = node.index; break;
      case NodeKind::constant: values[id] = lambda.constant(node.type, node.bits); break;
      case NodeKind::literal: {
        const GraphLiteral& literal = graph_.literals[static_cast<std::size_t>(node.index)];
        values[id] = lambda.constant(literal.type, literal.bits);
        break;
      }
      case NodeKind::compute:
        values[id] = node.op == Op::convert ? lambda.convert(operands[0], node.type)
                                            : lambda.apply(node.op, std::move(operands));
        break;
      case NodeKind::param:
        throw UserError(
            ErrorCode::unsupported,
            fmt::format("{} uses the parameter \"{}\"; it computes from its arguments and literals "
                        "alone: combine the parameter with an operand of cf::fold instead",
                        what, graph_.params[static_cast<std::size_t>(node.index)].name));
      default:
        throw UserError(ErrorCode::unsupported,
                        fmt::format("{} uses an input or a fold; it computes from its arguments "
                                    "and literals alone: give the input to cf::fold as an operand",
                                    what));
    }
  }
  for (NodeId result : results) lambda.results.push_back(values[static_cast<std::size_t>(result)]);
  return lambda;
}

}  // namespace chainfold::codegen
