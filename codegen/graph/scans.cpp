// GraphBuilder::running, and what graphs tell about their scans.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/builder.hpp"
#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/fold_sum.hpp"
#include "chainfold/codegen/graph/graph.hpp"

namespace chainfold::codegen {

std::vector<bool> GraphBuilder::computed_from(const std::vector<NodeId>& values) const {
  std::vector<bool> needed(graph_.nodes.size(), false);
  for (const NodeId value : values) needed[static_cast<std::size_t>(value)] = true;
  // Operands stand before their users.
  for (std::size_t id = needed.size(); id-- > 0;) {
    if (!needed[id] || graph_.nodes[id].kind != NodeKind::compute) continue;
    for (const NodeId operand : graph_.nodes[id].operands)
      needed[static_cast<std::size_t>(operand)] = true;
  }
  return needed;
}

std::vector<NodeId> GraphBuilder::renamed(const std::vector<NodeId>& ids,
                                          const std::vector<NodeId>& now) {
  std::vector<NodeId> names;
  for (const NodeId id : ids) names.push_back(now[static_cast<std::size_t>(id)]);
  return names;
}

NodeId GraphBuilder::recomputed(NodeId id, const std::vector<NodeId>& now) {
  const Node node = graph_.nodes[static_cast<std::size_t>(id)];  // a copy: the list grows
  std::vector<NodeId> operands = renamed(node.operands, now);
  if (operands == node.operands) return id;
  return node.op == Op::convert ? convert(operands[0], node.type)
                                : compute(node.op, std::move(operands));
}

GraphBuilder::Running GraphBuilder::as_running(const Node& node) {
  const Fold& fold = graph_.folds[static_cast<std::size_t>(node.index)];
  if (node.part != 0 && fold.linear)
    return {make_running_sum(node.type), {convert(node.operands[0], node.type)}};
  if (fold.finalize.results.size() > 1 && !fold.linear) {
    Fold one = fold;
    one.finalize.results = {fold.finalize.results[static_cast<std::size_t>(node.part)]};
    if (node.part != 0) one.name = fmt::format("{}.{}", fold.name, node.part);
    return {std::move(one), node.operands};
  }
  if (fold.place) {  // in words: a lane has no narrower operations
    const bool narrow = is_integer(fold.operands[0]) && size_of(fold.operands[0]) < 4;
    const DType type = narrow ? DType::i32 : fold.operands[0];
    const Fold of_words = *fold.place == Op::max ? make_argmax(type) : make_argmin(type);
    return {in_order(of_words), {convert(node.operands[0], type), node.operands[1]}};
  }
  const bool has_own_state = fold.linear && fold.operands[0] == DType::f64;
  return {has_own_state ? make_running_sum(DType::f64) : fold, node.operands};
}

NodeId GraphBuilder::running(NodeId value, ScanForm form) {
  const char* const word = form.exclusive ? "cf::exclusive" : "cf::inclusive";
  if (level(value) == Level::element) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("{} is given one value an element; it takes an expression of folds, "
                    "e.g. {}(cf::sum(x))",
                    word, word));
  }
  if (!depends(value, NodeKind::fold)) {
    throw UserError(ErrorCode::unsupported,
                    fmt::format("{} is given an expression without a fold; it takes one of folds, "
                                "e.g. {}(cf::sum(x)), and elements are counted by cf::index()",
                                word, word));
  }
  const std::vector<bool> needed = computed_from({value});
  auto elements_so_far = [&] {
    NodeId count = index();
    if (form.reverse) count = compute(Op::sub, {extent(), count});
    // `index` elements lie before this one; extent - index begin with it.
    if (form.exclusive == form.reverse) {
      count = compute(form.reverse ? Op::sub : Op::add, {count, constant(DType::i64, 1)});
    }
    return count;
  };
  std::vector<NodeId> running(needed.size(), kNoNode);
  for (std::size_t id = 0; id < needed.size(); ++id) {
    if (!needed[id]) continue;
    const Node node = graph_.nodes[id];  // a copy: the list grows
    if (node.level == Level::uniform) {
      running[id] = static_cast<NodeId>(id);
    } else if (node.kind == NodeKind::fold) {
      Running now = as_running(node);
      running[id] = scan(std::move(now.fold), std::move(now.operands), form, node.filter);
    } else if (node.kind == NodeKind::extent) {
      running[id] = elements_so_far();
    } else {
      running[id] = recomputed(static_cast<NodeId>(id), running);
    }
  }
  return running[static_cast<std::size_t>(value)];
}

std::vector<NodeId> GraphBuilder::single_results(const std::vector<NodeId>& outputs) {
  const auto scans = [&](NodeId output) { return depends(output, NodeKind::scan); };
  if (std::none_of(outputs.begin(), outputs.end(), scans)) return outputs;
  const std::vector<bool> needed = computed_from(outputs);
  std::vector<NodeId> now(needed.size());
  for (std::size_t id = 0; id < now.size(); ++id) {
    now[id] = static_cast<NodeId>(id);
    if (!needed[id]) continue;
    const Node node = graph_.nodes[id];  // a copy: the list grows
    if (node.kind == NodeKind::fold) {
      Running beside = as_running(node);
      now[id] = fold(std::move(beside.fold), std::move(beside.operands), node.filter);
    } else if (node.kind == NodeKind::compute) {
      now[id] = recomputed(static_cast<NodeId>(id), now);
    }
  }
  return renamed(outputs, now);
}

}  // namespace chainfold::codegen
