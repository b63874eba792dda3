#include "chainfold/tests/support/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/merge_path.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/tests/support/reference_fold.hpp"

namespace chainfold::test {

namespace {

using codegen::Fold;
using codegen::Graph;
using codegen::Level;
using codegen::Node;
using codegen::NodeId;
using codegen::NodeKind;
using codegen::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Evaluator {
 public:
  Evaluator(const Graph& graph, const std::vector<Column>& inputs, const ReferenceRequest& request)
      : graph_(graph),
        inputs_(inputs),
        request_(request),
        bits_(graph.nodes.size()),
        scanned_(codegen::depending_on(graph, NodeKind::scan)),
        has_scans_(has_scans(graph)) {
    for (const Node& node : graph.nodes) {
      bool inexact = node.kind == NodeKind::compute && codegen::is_inexact(node.op);
      for (NodeId operand : node.operands) inexact = inexact || inexact_[at(operand)];
      if (node.filter != codegen::kNoNode && inexact_[at(node.filter)] &&
          request.transcendental_ulp)
        throw std::logic_error("a filter on exp, log or pow depends on the executor's last bits");
      inexact_.push_back(inexact);
      double unit = inexact && codegen::is_inexact(node.op) && node.kind == NodeKind::compute
                        ? rounding_unit(node.type)
                        : 0;
      for (NodeId operand : node.operands) unit = std::max(unit, inexact_unit_[at(operand)]);
      inexact_unit_.push_back(unit);
    }
    needed_.assign(graph.nodes.size(), false);
    for (NodeId output : graph.outputs) {
      if (graph.node(output).level == Level::element) needed_[at(output)] = true;
    }
    for (std::size_t id = needed_.size(); id-- > 0;) {
      if (!needed_[id] || graph.nodes[id].kind == NodeKind::scan) continue;
      for (NodeId operand : graph.nodes[id].operands) needed_[at(operand)] = true;
    }
  }

  /// Appends to every output what it must be over the segment of elements first, first + step, ...
  void segment(std::int64_t first, std::int64_t count, std::int64_t step, const codegen::Plan& plan,
               std::vector<std::vector<Expected>>& outputs) {
    // One a node, whatever nodes share.
    std::map<std::size_t, Accumulator> folds;
    std::map<std::size_t, std::vector<Value>> scans;  // a value an element
    bool backward = false;
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.kind != NodeKind::scan && node.kind != NodeKind::fold) continue;
      folds.emplace(id, graph_.folds[static_cast<std::size_t>(node.index)]);
      if (node.kind == NodeKind::scan) scans[id].resize(static_cast<std::size_t>(count));
      backward = backward || node.reverse;
    }
    auto scan_element = [&](bool reverse) {
      for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
        const Node& node = graph_.nodes[id];
        if (node.kind != NodeKind::scan || node.reverse != reverse) continue;
        Accumulator& fold = folds.at(id);
        Value& value = scans.at(id)[static_cast<std::size_t>(index_)];
        if (node.exclusive) value = fold_value(id, fold, count, plan);
        add(node, fold);
        if (!node.exclusive) value = fold_value(id, fold, count, plan);
      }
    };
    for (index_ = 0; index_ < count; ++index_) {
      evaluate_elements(first + index_ * step);
      for (auto& [id, fold] : folds) {
        if (graph_.nodes[id].kind == NodeKind::fold) add(graph_.nodes[id], fold);
      }
      scan_element(false);
    }
    for (index_ = count - 1; backward && index_ >= 0; --index_) {
      evaluate_elements(first + index_ * step);
      scan_element(true);
    }
    if (count == 0) uniform_nodes();
    const std::vector<Value> values = segment_level(folds, count, plan);
    const bool elements = std::find(needed_.begin(), needed_.end(), true) != needed_.end();
    for (index_ = 0; elements && index_ < count; ++index_) {
      evaluate_elements(first + index_ * step);
      const std::vector<Value> here = element_level(scans, values);
      for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
        const auto id = at(graph_.outputs[o]);
        if (graph_.nodes[id].level == Level::element) outputs[o].push_back(expected(id, here[id]));
      }
    }
    for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
      const auto id = at(graph_.outputs[o]);
      if (graph_.nodes[id].level == Level::segment) outputs[o].push_back(expected(id, values[id]));
    }
  }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  void uniform_nodes() {
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      if (graph_.nodes[id].level == Level::uniform) bits_[id] = element(graph_.nodes[id], 0);
    }
  }

  /// Bits of the whole input at element i that no fold, scan or extent has a part in.
  void evaluate_elements(std::int64_t i) {
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.level != Level::segment && !scanned_[id]) bits_[id] = element(node, i);
    }
  }

  void add(const Node& node, Accumulator& fold) const {
    if (node.filter != codegen::kNoNode && !bits_[at(node.filter)]) return;
    std::vector<Bits> operands;
    for (NodeId operand : node.operands) operands.push_back(bits_[at(operand)]);
    operands.resize(graph_.folds[static_cast<std::size_t>(node.index)].operands.size());
    fold.add(operands, node.reverse);
  }

  Value fold_value(std::size_t id, const Accumulator& fold, std::int64_t extent,
                   const codegen::Plan& plan) const {
    const Node& node = graph_.nodes[id];
    const codegen::FoldPlan& how = plan.folds[static_cast<std::size_t>(node.index)];
    double bound = plan.strategy == codegen::Strategy::padded
                       ? codegen::padded_bound_u(plan, extent)
                       : how.error_bound_u;
    // The reference rounds products that this unit does not.
    const DType in = graph_.folds[static_cast<std::size_t>(node.index)].operands[0];
    if (how.unit == codegen::Unit::mma_diagonal && in == DType::f64) bound += 1;
    std::vector<Bits> given;
    const std::size_t lifted = graph_.folds[static_cast<std::size_t>(node.index)].operands.size();
    for (std::size_t i = lifted; i < node.operands.size(); ++i)
      given.push_back(bits_[at(node.operands[i])]);
    const double slack = inexact_[id] ? request_.transcendental_ulp * 4 * inexact_unit_[id] : 0;
    return fold.result({.bound_u = bound,
                        .slack = slack,
                        .levels = levels(plan, extent),
                        .part = node.part,
                        .scanned = has_scans_,
                        .given = std::move(given)});
  }

  Expected expected(std::size_t id, const Value& v) const {
    Expected e{.type = graph_.nodes[id].type,
               .any = v.any,
               .nan = v.nan,
               .interval = v.interval,
               .positive_zero = v.positive_zero,
               .bits = v.bits,
               .lo = v.lo,
               .hi = v.hi};
    const NodeKind kind = graph_.nodes[id].kind;
    if (v.sum && (kind == NodeKind::fold || kind == NodeKind::scan)) {
      e.is_sum = true;
      e.exact = v.sum->exact;
      e.exact_low = v.sum->exact_low;
      e.sum_abs = v.sum->sum_abs;
    }
    return e;
  }

  /// What outputs with a value an element are computed from, at the element whose bits are at hand.
  std::vector<Value> element_level(const std::map<std::size_t, std::vector<Value>>& scans,
                                   const std::vector<Value>& of_segment) const {
    std::vector<Value> values(graph_.nodes.size());
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (!needed_[id]) continue;
      if (node.level == Level::segment) {
        values[id] = of_segment[id];
      } else if (node.kind == NodeKind::scan) {
        values[id] = scans.at(id)[static_cast<std::size_t>(index_)];
      } else if (node.kind == NodeKind::compute) {
        values[id] = derived(node, values);
      } else {
        values[id] = Value::exactly(node.type, bits_[id]);
      }
    }
    return values;
  }

  Bits element(const Node& node, std::int64_t i) const {
    const auto index = static_cast<std::size_t>(node.index);
    switch (node.kind) {
      case NodeKind::input: {
        const Bits bits = inputs_[index].get(i);
        return node.type == DType::boolean ? Bits{bits != 0} : bits;
      }
      case NodeKind::param: return request_.params[index];
      case NodeKind::literal: return graph_.literals[index].bits;
      case NodeKind::constant: return node.bits;
      case NodeKind::index: return static_cast<Bits>(index_);
      default: break;
    }
    Bits in[3] = {};
    for (std::size_t k = 0; k < node.operands.size(); ++k) in[k] = bits_[at(node.operands[k])];
    const DType type = graph_.node(node.operands.back()).type;
    return codegen::evaluate(node.op, type, node.type, in[0], in[1], in[2]);
  }

  std::vector<Value> segment_level(const std::map<std::size_t, Accumulator>& folds,
                                   std::int64_t extent, const codegen::Plan& plan) {
    std::vector<Value> values(graph_.nodes.size());
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.level == Level::element) continue;
      if (node.level == Level::uniform) {
        values[id] = Value::exactly(node.type, bits_[id]);
      } else if (node.kind == NodeKind::extent) {
        values[id] = Value::exactly(DType::i64, static_cast<Bits>(extent));
      } else if (node.kind == NodeKind::fold) {
        values[id] = fold_value(id, folds.at(id), extent, plan);
      } else {
        values[id] = derived(node, values);
      }
    }
    return values;
  }

  /// The longest chain of merges that an element's value goes through.
  [[nodiscard]] int levels(const codegen::Plan& plan, std::int64_t n) const {
    const int halvings = 2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) + 4;
    // Of scans, whose strategies differ: no lane merges more than its share of a warp's elements.
    if (codegen::has_scans(graph_)) return halvings + static_cast<int>(std::min(n, n / 32 + 64));
    if (codegen::takes_stretches(plan.strategy)) {
      // Elements of a lane, tiles of a stretch, and states of stretches, a lane of a block each.
      const std::int64_t tiles = n / codegen::tile_items(plan) + 1;
      return halvings + static_cast<int>(std::min(
                            n, tiles + plan.parts.wanted / 32 + codegen::elements_a_lane(plan)));
    }
    const bool columns = plan.strategy == codegen::Strategy::columns;
    const bool parts = plan.strategy == codegen::Strategy::parts || columns;
    const std::int64_t side_by_side =
        columns ? plan.lanes_per_segment : std::int64_t{32} * plan.load_width;
    const std::int64_t step = side_by_side * plan.depth * (parts ? plan.warps : 1);
    const std::int64_t length =
        parts ? std::max<std::int64_t>(
                    plan.parts.quantum * (plan.parts.few > 0 ? codegen::kMostQuanta : 1),
                    n / std::max<std::int64_t>(1, plan.parts.wanted))
              : n;
    return halvings + static_cast<int>(std::min(n, length / std::max<std::int64_t>(1, step))) +
           static_cast<int>(columns ? std::min(n, plan.parts.wanted / plan.warps) : 0);
  }

  Value derived(const Node& node, const std::vector<Value>& values) const {
    const DType type = graph_.node(node.operands.back()).type;
    std::vector<const Value*> in;
    bool exact = true;
    if (node.op == Op::select) {
      const Value& condition = values[at(node.operands[0])];
      if (!condition.any && !condition.interval)
        return values[at(node.operands[condition.bits != 0 ? 1 : 2])];
    }
    for (NodeId operand : node.operands) {
      in.push_back(&values[at(operand)]);
      if (in.back()->any) return Value::nothing_promised();
      exact = exact && !in.back()->interval;
    }
    if (!exact && (node.op == Op::eq || node.op == Op::ne)) {
      // Known where what is exact lies outside of what is not.
      const std::size_t which = in[0]->interval ? 0 : 1;
      const Value &interval = *in[which], &other = *in[1 - which];
      const double at = other.interval ? 0 : codegen::double_of_bits(type, other.bits);
      const bool apart = !other.interval && (at < interval.lo || at > interval.hi);
      return apart ? Value::exactly(DType::boolean, node.op == Op::ne) : Value::nothing_promised();
    }
    if (!exact) require_rule(node, type, in);
    if (!exact && node.op == Op::div && in[1]->contains_zero(type))
      return Value::nothing_promised();
    const bool product = node.op == Op::mul || node.op == Op::fma;
    if (!exact && product &&
        (zero_times_infinity(type, *in[0], *in[1]) || zero_times_infinity(type, *in[1], *in[0])))
      return Value::nothing_promised();
    return corners(node, type, in, exact);
  }

  /// A product that may be NaN within an interval, and at none of its ends.
  static bool zero_times_infinity(DType type, const Value& zero, const Value& infinite) {
    if (!is_float(type) || !zero.contains_zero(type)) return false;
    const std::vector<Bits> ends = infinite.corners(type);
    return std::any_of(ends.begin(), ends.end(),
                       [&](Bits end) { return std::isinf(codegen::double_of_bits(type, end)); });
  }

  static void require_rule(const Node& node, DType type, const std::vector<const Value*>& in) {
    switch (node.op) {
      case Op::neg:
      case Op::abs:
      case Op::sign:
      case Op::sqrt:
      case Op::floor:
      case Op::ceil:
      case Op::round:
      case Op::exp:
      case Op::exp2:
      case Op::expm1:
      case Op::log:
      case Op::log2:
      case Op::log1p:
      case Op::tanh:
      case Op::erf:
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::min:
      case Op::max:
      case Op::fma: return;
      case Op::convert:
        if (is_float(node.type)) return;
        break;
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge: return;
      case Op::pow:
        if (!in[1]->interval && (!in[0]->interval || in[0]->lo > 0)) return;
        break;
      default: break;
    }
    throw NoRule(fmt::format("no rule for {} of inexact {}", name_of(node.op), name_of(type)));
  }

  [[nodiscard]] Value corners(const Node& node, DType type, const std::vector<const Value*>& in,
                              bool exact) const {
    std::vector<std::vector<Bits>> ends;
    for (std::size_t k = 0; k < in.size(); ++k) {
      ends.push_back(in[k]->corners(graph_.node(node.operands[k]).type));
    }
    while (ends.size() < 3) ends.push_back({0});
    double lo = kInfinity, hi = -kInfinity;
    std::optional<Bits> first;
    bool same = true;
    for (Bits a : ends[0]) {
      for (Bits b : ends[1]) {
        for (Bits c : ends[2]) {
          const Bits result = codegen::evaluate(node.op, type, node.type, a, b, c);
          if (!first) first = result;
          same = same && result == *first;
          if (!is_float(node.type)) continue;
          const double x = codegen::double_of_bits(node.type, result);
          if (std::isnan(x) && !exact) return Value::nothing_promised();
          lo = std::min(lo, x);
          hi = std::max(hi, x);
        }
      }
    }
    const bool widen = codegen::is_inexact(node.op) && request_.transcendental_ulp > 0;
    if (exact && !widen) return Value::exactly(node.type, *first);
    if (!is_float(node.type)) {
      return same ? Value::exactly(node.type, *first) : Value::nothing_promised();
    }
    if (std::isnan(codegen::double_of_bits(node.type, *first)))
      return Value::exactly(node.type, *first);
    if (node.op == Op::abs && in[0]->contains_zero(type)) lo = 0;
    for (int i = 0; widen && i < request_.transcendental_ulp; ++i) {
      lo = next_down(node.type, lo);
      hi = next_up(node.type, hi);
    }
    return Value::between(node.type, lo, hi);
  }

  const Graph& graph_;
  const std::vector<Column>& inputs_;
  const ReferenceRequest& request_;
  std::vector<Bits> bits_;
  std::int64_t index_ = 0;
  std::vector<bool> inexact_;
  std::vector<double> inexact_unit_;    // of the type of what is not exact in it
  std::vector<bool> scanned_, needed_;  // depends on a scan; an element-level output is made of it
  bool has_scans_;
};

}  // namespace

std::vector<std::vector<Expected>> reference(const Graph& graph, const std::vector<Column>& inputs,
                                             std::int64_t elements,
                                             const ReferenceRequest& request) {
  std::vector<std::vector<Expected>> expected(graph.outputs.size());
  Evaluator evaluator(graph, inputs, request);
  auto append = [&](std::int64_t first, std::int64_t count, const codegen::Plan& plan,
                    std::int64_t step = 1) {
    evaluator.segment(first, count, step, plan, expected);
  };
  if (codegen::is_ragged(graph)) {
    for (const auto& [begin, end] : request.ragged) append(begin, end - begin, request.plan);
    return expected;
  }
  if (request.segment == 0) {
    append(0, elements, request.plan);
    return expected;
  }
  const std::int64_t full = elements / request.segment;
  if (graph.partition.kind == codegen::Partition::Kind::columns) {
    for (std::int64_t c = 0; c < request.segment; ++c)
      append(c, full, request.plan, request.segment);
    return expected;
  }
  for (std::int64_t s = 0; s < full; ++s)
    append(s * request.segment, request.segment, request.plan);
  if (full * request.segment < elements)
    append(full * request.segment, elements % request.segment, request.tail_plan);
  return expected;
}

std::string mismatch(const Expected& expected, Bits actual) {
  if (expected.any) return {};
  const DType type = expected.type;
  const std::string got = codegen::text_of_bits(type, actual);
  if (!is_float(type)) {
    if (actual == expected.bits) return {};
    return fmt::format("{} instead of {}", got, codegen::text_of_bits(type, expected.bits));
  }
  const double x = codegen::double_of_bits(type, actual);
  if (expected.nan) return std::isnan(x) ? "" : fmt::format("{} instead of NaN", got);
  if (std::isnan(x)) {
    return expected.interval
               ? fmt::format("NaN instead of [{:.9g}, {:.9g}]", expected.lo, expected.hi)
               : fmt::format("NaN instead of {}", codegen::text_of_bits(type, expected.bits));
  }
  if (expected.positive_zero && x == 0 && std::signbit(x)) return "-0 from a sum";
  if (!expected.interval) {
    return actual == expected.bits
               ? ""
               : fmt::format("{} instead of {}", got, codegen::text_of_bits(type, expected.bits));
  }
  if (x >= expected.lo && x <= expected.hi) return {};
  std::string text = fmt::format("{} is outside [{:.9g}, {:.9g}]", got, expected.lo, expected.hi);
  if (expected.is_sum) text += fmt::format(", off by {:.3g} u", error_in_u(expected, actual));
  return text;
}

codegen::Plan as_written(codegen::Plan plan, const codegen::Graph& graph,
                         const codegen::Graph& written) {
  std::vector<codegen::FoldPlan> folds;
  std::vector<bool> taken(graph.folds.size());
  for (const codegen::Fold& fold : written.folds) {
    codegen::FoldPlan& how = folds.emplace_back();
    for (std::size_t f = 0; f < graph.folds.size(); ++f) {
      if (taken[f] || graph.folds[f].name != fold.name) continue;  // folds keep their order
      taken[f] = true;
      how = plan.folds[f];
      break;
    }
  }
  plan.folds = std::move(folds);
  return plan;
}

double error_in_u(const Expected& expected, Bits actual) {
  const double x = codegen::double_of_bits(expected.type, actual);
  const double off = std::fabs((x - expected.exact) - expected.exact_low);
  return off == 0 ? 0 : off / expected.sum_abs / rounding_unit(expected.type);
}

Verdict judge(const std::vector<std::vector<Expected>>& expected,
              const std::vector<Column>& actual) {
  constexpr int kShown = 4;
  Verdict verdict;
  int wrong = 0;
  if (expected.size() != actual.size()) verdict.problems = "the number of outputs differs\n";
  for (std::size_t o = 0; o < std::min(expected.size(), actual.size()); ++o) {
    if (actual[o].count() < static_cast<std::int64_t>(expected[o].size())) {
      verdict.problems += fmt::format("output {}: {} values instead of {}\n", o, actual[o].count(),
                                      expected[o].size());
      continue;
    }
    if (!actual[o].sentinel_intact()) {
      verdict.problems += fmt::format("output {}: something was written behind its end\n", o);
    }
    for (std::size_t s = 0; s < expected[o].size(); ++s) {
      const Bits bits = actual[o].get(static_cast<std::int64_t>(s));
      ++verdict.values;
      if (expected[o][s].any) ++verdict.unchecked;
      if (expected[o][s].is_sum)
        verdict.worst_u = std::max(verdict.worst_u, error_in_u(expected[o][s], bits));
      const std::string problem = mismatch(expected[o][s], bits);
      if (problem.empty()) continue;
      if (++wrong <= kShown) {
        verdict.problems +=
            fmt::format("output {}, value {} of {}: {}\n", o, s, expected[o].size(), problem);
      }
    }
  }
  if (wrong > kShown) verdict.problems += fmt::format("and {} more\n", wrong - kShown);
  return verdict;
}

}  // namespace chainfold::test
