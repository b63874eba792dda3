#include "chainfold/codegen/graph/print.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {
namespace {

std::string_view name_of(Level level) {
  switch (level) {
    case Level::uniform: return "uniform";
    case Level::segment: return "segment";
    case Level::element: return "element";
    case Level::state: return "state";
  }
  return "?";
}

/// A name as it stands between quotes, on one line whatever it holds.
std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// Entry `index` of a list; printing is also how a broken graph is shown.
template <class T>
const T* entry(const std::vector<T>& list, int index) {
  return index >= 0 && index < static_cast<int>(list.size())
             ? &list[static_cast<std::size_t>(index)]
             : nullptr;
}
template <class T>
std::string named(const std::vector<T>& list, int index) {
  const T* item = entry(list, index);
  return item != nullptr ? quoted(item->name) : fmt::format("<{}>", index);
}

std::string operands(const Node& node) {
  std::string out;
  for (const NodeId id : node.operands) out += fmt::format("{}%{}", out.empty() ? "" : ", ", id);
  return out;
}

std::string text(const Graph& graph, const Node& node) {
  switch (node.kind) {
    case NodeKind::input: {
      const GraphInput* input = entry(graph.inputs, node.index);
      return "input " + named(graph.inputs, node.index) +
             (input != nullptr && input->is_packed() ? " as bits" : "");
    }
    case NodeKind::param: return "param " + named(graph.params, node.index);
    case NodeKind::literal: return fmt::format("literal {}", node.index);
    case NodeKind::constant: return "constant " + text_of_bits(node.type, node.bits);
    case NodeKind::compute: return fmt::format("{} {}", codegen::name_of(node.op), operands(node));
    case NodeKind::extent: return "extent";
    case NodeKind::index: return "index";
    case NodeKind::field: return fmt::format("field {}", node.index);
    case NodeKind::lag: return fmt::format("lag {} {}", node.index, operands(node));
    case NodeKind::fold:
    case NodeKind::scan: {
      const Fold* fold = entry(graph.folds, node.index);
      const std::string filter =
          node.filter == kNoNode ? "" : fmt::format(" where %{}", node.filter);
      std::string what = "fold";
      if (node.kind == NodeKind::scan) {
        what = fmt::format("scan {}{}", node.exclusive ? "exclusive" : "inclusive",
                           node.reverse ? " reverse" : "");
      }
      return fmt::format(
          "{} {}{} {}{}", what, fold != nullptr ? fold->name : fmt::format("<{}>", node.index),
          node.part == 0 ? "" : fmt::format(" result {}", node.part), operands(node), filter);
    }
  }
  return "?";
}

std::string text(const Graph& graph, const Partition& partition) {
  if (partition.kind == Partition::Kind::whole) return "whole";
  if (partition.kind == Partition::Kind::offsets) {
    std::string bounds;
    for (const GraphInput& bound : partition.bounds)
      bounds += fmt::format(" \"{}\" : {}", bound.name, name_of(bound.type));
    return "offsets" + bounds;
  }
  if (partition.kind == Partition::Kind::heads) {
    std::string condition;
    for (std::size_t i = 0; i < partition.heads.size(); ++i)
      condition += fmt::format("\n  %{} = {} : {}", i, text(graph, partition.heads[i]),
                               name_of(partition.heads[i].type));
    return "heads" + condition;
  }
  const std::string size = partition.size_param >= 0
                               ? "param " + named(graph.params, partition.size_param)
                               : std::to_string(partition.size);
  if (partition.kind == Partition::Kind::columns) return "columns " + size;
  return fmt::format("segments {}{}", size, partition.tail ? " with tail" : "");
}

}  // namespace

std::string print(const Graph& graph) {
  std::string out = "graph over " + text(graph, graph.partition) + "\n";
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    out += fmt::format("%{} = {} : {} {}\n", i, text(graph, node), name_of(node.type),
                       name_of(node.level));
  }
  for (const NodeId output : graph.outputs) out += fmt::format("output %{}\n", output);
  return out;
}

}  // namespace chainfold::codegen
