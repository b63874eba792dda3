#include "chainfold/codegen/explain.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/fold_kinds.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/print.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/units.hpp"
#include "chainfold/codegen/program/print.hpp"

namespace chainfold::codegen {

namespace {

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

std::string explain_graph(const Graph& graph, const Target& target, const Compiled& compiled,
                          const Source& source) {
  const int read = element_bytes(graph);
  int written[2] = {0, 0};  // a segment, an element
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
