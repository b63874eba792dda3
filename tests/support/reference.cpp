#include "chainfold/tests/support/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "chainfold/tests/support/exact_sum.hpp"

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

double largest(DType type) {
  if (type == DType::f32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}
double smallest(DType type) { return type == DType::f32 ? 0x1p-149 : 0x1p-1074; }
double unit(DType type) { return type == DType::f64 ? 0x1p-53 : 0x1p-24; }

/// The neighbouring values of an f32 or f64.
double next_up(DType type, double x) {
  return type == DType::f32 ? std::nextafter(static_cast<float>(x), HUGE_VALF)
                            : std::nextafter(x, HUGE_VAL);
}
double next_down(DType type, double x) { return -next_up(type, -x); }

/// The values of the type around a real number.
double round_up(DType type, double x) {
  if (type != DType::f32 || std::isinf(x)) return x;
  if (x > std::numeric_limits<float>::max()) return kInfinity;
  if (x < -static_cast<double>(std::numeric_limits<float>::max()))
    return -std::numeric_limits<float>::max();
  const double near = static_cast<float>(x);
  return near < x ? next_up(type, near) : near;
}
double round_down(DType type, double x) { return -round_up(type, -x); }

/// A segment-level value: like Expected, without its type.
struct Value {
  bool any = false, nan = false, interval = false, positive_zero = false;
  Bits bits = 0;
  double lo = 0, hi = 0;

  static Value exactly(DType type, Bits bits) {
    Value v;
    v.bits = bits;
    v.nan = is_float(type) && std::isnan(codegen::double_of_bits(type, bits));
    return v;
  }
  static Value nothing_promised() {
    Value v;
    v.any = true;
    return v;
  }
  static Value between(DType type, double lo, double hi) {
    if (!(lo <= hi)) throw std::logic_error(fmt::format("an empty interval [{:a}, {:a}]", lo, hi));
    if (lo == hi && lo != 0) return exactly(type, codegen::bits_of_double(type, lo));
    Value v;
    v.interval = true;
    v.lo = lo;
    v.hi = hi;
    return v;
  }
  /// The ends, as bits.
  [[nodiscard]] std::vector<Bits> corners(DType type) const {
    if (!interval) return {bits};
    return {codegen::bits_of_double(type, lo), codegen::bits_of_double(type, hi)};
  }
  [[nodiscard]] bool contains_zero(DType type) const {
    if (interval) return lo <= 0 && hi >= 0;
    return codegen::double_of_bits(type, bits) == 0;
  }
};

bool is_transcendental(Op op) { return op == Op::exp || op == Op::log || op == Op::pow; }

/// One segment's state of one fold.
class Accumulator {
 public:
  Accumulator(const Fold& fold) : fold_(fold), state_(fold.init) {
    is_sum_ = fold.linear && is_float(fold.result());
    is_variance_ = is("variance.");
    is_product_ = is("product.") && is_float(fold.result());
    is_logsumexp_ = is("logsumexp.");
  }

  void add(const std::vector<Bits>& operands) {
    ++count_;
    if (is_sum_) {
      sum_.add(codegen::double_of_bits(fold_.operands[0], operands[0]));
    } else if (is_variance_ || is_product_ || is_logsumexp_) {
      elements_.push_back(codegen::double_of_bits(fold_.operands[0], operands[0]));
    } else {
      std::vector<Bits> both = state_;
      const std::vector<Bits> lifted = codegen::evaluate(fold_.lift, operands);
      both.insert(both.end(), lifted.begin(), lifted.end());
      state_ = codegen::evaluate(fold_.merge, both);
    }
  }

  /// `bound_u` is the plan's, `slack` what the terms themselves may deviate, relatively.
  [[nodiscard]] Value result(double bound_u, double slack, int levels) const {
    if (is_sum_) return sum_result(bound_u, slack);
    if (is_variance_) return variance_result(levels, slack);
    if (is_product_) return product_result();
    if (is_logsumexp_) return logsumexp_result(levels);
    const DType type = fold_.result();
    const Bits bits = codegen::evaluate(fold_.finalize, state_)[0];
    const Value value = Value::exactly(type, bits);
    if (slack == 0 || value.nan || !is_float(type)) return value;
    const double x = codegen::double_of_bits(type, bits), off = std::fabs(x) * slack;
    if (std::isinf(x)) return value;
    return Value::between(type, round_down(type, x - off), round_up(type, x + off));
  }
  [[nodiscard]] bool is_sum() const { return is_sum_; }
  [[nodiscard]] const ExactSum& sum() const { return sum_; }

 private:
  [[nodiscard]] bool is(const char* prefix) const { return fold_.name.rfind(prefix, 0) == 0; }

  /// Every order takes n - 1 roundings, as long as no partial product leaves the range.
  [[nodiscard]] Value product_result() const {
    const DType type = fold_.result();
    double up = 0, down = 0;
    constexpr mpfr_prec_t kEnough = 300;
    Real product(1, kEnough);
    for (double x : elements_) {
      if (std::isnan(x)) return Value::exactly(type, codegen::bits_of_double(type, x));
      (std::fabs(x) >= 1 ? up : down) += std::fabs(std::log2(std::fabs(x)));
      product *= Real(x, kEnough);
    }
    if (!(up < (type == DType::f32 ? 126 : 1022) && down < (type == DType::f32 ? 124 : 1020)))
      return Value::nothing_promised();
    const double n = static_cast<double>(elements_.size()) * (1 + 0x1p-4);
    const double error = n * unit(type) * std::fabs(product.nearest());
    Real lo = product, hi = product;
    lo -= Real(error, kEnough);
    hi += Real(error, kEnough);
    return Value::between(type, round_down(type, lo.down()), round_up(type, hi.up()));
  }

  /// Each merge rounds the scaled sum, its exp (some ulp, relatively) and the difference below it.
  [[nodiscard]] Value logsumexp_result(int levels) const {
    const DType type = fold_.result();
    double top = -kInfinity;
    for (double x : elements_) {
      if (std::isnan(x)) return Value::exactly(type, codegen::bits_of_double(type, x));
      top = std::max(top, x);
    }
    if (std::isinf(top)) return Value::exactly(type, codegen::bits_of_double(type, top));
    long double sum = 0;
    for (double x : elements_) sum += expl(static_cast<long double>(x) - top);
    const long double value = top + logl(sum);
    const double error = unit(type) * (12.0 * levels + 8 + 4 * std::fabs(top) +
                                       4 * std::fabs(static_cast<double>(value)));
    return Value::between(type, round_down(type, static_cast<double>(value - error)),
                          round_up(type, static_cast<double>(value + error)));
  }

  [[nodiscard]] Value sum_result(double bound_u, double slack) const {
    const DType type = fold_.result();
    auto bits = [&](double x) { return codegen::bits_of_double(type, x); };
    if (sum_.is_nan()) return Value::exactly(type, bits(std::nan("")));
    if (sum_.is_infinite()) return Value::exactly(type, bits(sum_.infinity()));
    if (sum_.sum_abs() * (1 + 0x1p-12) >= largest(type)) return Value::nothing_promised();
    // The bound is of first order in u: 2^-12 of it covers the rest.
    const double error =
        (bound_u * (1 + 0x1p-12) * unit(type) + slack) * sum_.sum_abs() * (1 + 0x1p-40);
    Real lo = sum_.sum(), hi = sum_.sum();
    lo -= Real(error);
    hi += Real(error);
    double low = lo.down(), high = hi.up();
    if (error == 0) low = high = sum_.sum().nearest();
    // The library rounds inwards of the bound or its value would not be one of the type.
    low = round_up(type, low);
    high = round_down(type, high);
    if (low == 0 && high == 0) return Value::exactly(type, 0);  // a sum is never -0
    Value value = Value::between(type, low, high);
    value.positive_zero = true;
    return value;
  }

  [[nodiscard]] Value variance_result(int levels, double slack) const {
    const DType type = fold_.result();
    auto bits = [&](double x) { return codegen::bits_of_double(type, x); };
    if (elements_.empty()) return Value::exactly(type, bits(std::nan("")));
    double squares = 0, top = 0;
    for (double x : elements_) {
      if (!std::isfinite(x)) return Value::exactly(type, bits(std::nan("")));
      squares += x * x;
      top = std::max(top, std::fabs(x));
    }
    if (!(squares * 8 < largest(type))) return Value::nothing_promised();
    constexpr mpfr_prec_t kEnough = 600;
    const auto n = static_cast<double>(elements_.size());
    Real mean(0, kEnough), deviations(0, kEnough);
    for (double x : elements_) mean += Real(x, kEnough);
    mean /= Real(n, kEnough);
    for (double x : elements_) {
      Real d(x, kEnough);
      d -= mean;
      d *= d;
      deviations += d;
    }
    // Every merge rounds M2 a few times and shifts the mean by some u of the largest value, which
    // the next merges square.
    const double u = unit(type), m2 = deviations.up(), depth = levels;
    const double error = u * depth * 8 * (m2 + std::sqrt(m2 * squares)) +
                         (8 * depth * u) * (8 * depth * u) * squares +
                         4 * n * smallest(type) * (1 + top) + 4 * slack * squares;
    Real lo = deviations, hi = deviations;
    lo -= Real(error, kEnough);
    hi += Real(error, kEnough);
    lo /= Real(n, kEnough);
    hi /= Real(n, kEnough);
    return Value::between(type,
                          elements_.size() == 1 ? 0 : std::max(0.0, round_down(type, lo.down())),
                          elements_.size() == 1 ? 0 : round_up(type, hi.up()));
  }

  const Fold& fold_;
  bool is_sum_ = false, is_variance_ = false, is_product_ = false, is_logsumexp_ = false;
  std::int64_t count_ = 0;
  std::vector<Bits> state_;
  ExactSum sum_;
  std::vector<double> elements_;
};

class Evaluator {
 public:
  Evaluator(const Graph& graph, const std::vector<Column>& inputs, const ReferenceRequest& request)
      : graph_(graph), inputs_(inputs), request_(request), bits_(graph.nodes.size()) {
    for (const Node& node : graph.nodes) {
      bool inexact = node.kind == NodeKind::compute && is_transcendental(node.op);
      for (NodeId operand : node.operands) inexact = inexact || inexact_[at(operand)];
      if (node.filter != codegen::kNoNode && inexact_[at(node.filter)] &&
          request.transcendental_ulp)
        throw std::logic_error("a filter on exp, log or pow depends on the executor's last bits");
      inexact_.push_back(inexact);
    }
  }

  /// The segment of elements first, first + step, ...
  std::vector<Value> segment(std::int64_t first, std::int64_t count, std::int64_t step,
                             const codegen::Plan& plan) {
    std::vector<Accumulator> folds;
    for (const Fold& fold : graph_.folds) folds.emplace_back(fold);
    for (index_ = 0; index_ < count; ++index_) {
      const std::int64_t i = first + index_ * step;
      for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
        const Node& node = graph_.nodes[id];
        if (node.kind == NodeKind::fold) {
          if (node.filter != codegen::kNoNode && !bits_[at(node.filter)]) continue;
          std::vector<Bits> operands;
          for (NodeId operand : node.operands) operands.push_back(bits_[at(operand)]);
          folds[static_cast<std::size_t>(node.index)].add(operands);
        } else if (node.level != Level::segment) {
          bits_[id] = element(node, i);
        }
      }
    }
    if (count == 0) uniform_nodes();
    return segment_level(folds, count, plan);
  }

  /// The measurable sum behind an output, if it is one.
  [[nodiscard]] const std::vector<std::optional<ExactSum>>& sums() const { return sums_; }

 private:
  static std::size_t at(NodeId id) { return static_cast<std::size_t>(id); }

  void uniform_nodes() {
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      if (graph_.nodes[id].level == Level::uniform) bits_[id] = element(graph_.nodes[id], 0);
    }
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

  std::vector<Value> segment_level(const std::vector<Accumulator>& folds, std::int64_t extent,
                                   const codegen::Plan& plan) {
    std::vector<Value> values(graph_.nodes.size());
    sums_.assign(graph_.nodes.size(), std::nullopt);
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.level == Level::element) continue;
      if (node.level == Level::uniform) {
        values[id] = Value::exactly(node.type, bits_[id]);
      } else if (node.kind == NodeKind::extent) {
        values[id] = Value::exactly(DType::i64, static_cast<Bits>(extent));
      } else if (node.kind == NodeKind::fold) {
        const auto f = static_cast<std::size_t>(node.index);
        double bound = plan.folds[f].error_bound_u;
        // The reference rounds products that this unit does not.
        if (plan.folds[f].unit == codegen::Unit::mma_diagonal && node.type == DType::f64)
          bound += 1;
        const double slack = inexact_[id] ? request_.transcendental_ulp * 4 * unit(node.type) : 0;
        values[id] = folds[f].result(bound, slack, levels(plan, extent));
        if (folds[f].is_sum()) sums_[id] = folds[f].sum();
      } else {
        values[id] = derived(node, values);
      }
    }
    return values;
  }

  /// The longest chain of merges that an element's value goes through.
  static int levels(const codegen::Plan& plan, std::int64_t n) {
    const bool columns = plan.strategy == codegen::Strategy::columns;
    const bool parts = plan.strategy == codegen::Strategy::parts || columns;
    const std::int64_t side_by_side =
        columns ? plan.lanes_per_segment : std::int64_t{32} * plan.load_width;
    const std::int64_t step = side_by_side * plan.depth * (parts ? plan.warps : 1);
    const std::int64_t length =
        parts ? std::max<std::int64_t>(plan.part_quantum,
                                       n / std::max<std::int64_t>(1, plan.parts_wanted))
              : n;
    return 2 * static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n))) + 4 +
           static_cast<int>(std::min(n, length / std::max<std::int64_t>(1, step))) +
           static_cast<int>(columns ? std::min(n, plan.parts_wanted / plan.warps) : 0);
  }

  Value derived(const Node& node, const std::vector<Value>& values) const {
    const DType type = graph_.node(node.operands.back()).type;
    std::vector<const Value*> in;
    bool exact = true;
    for (NodeId operand : node.operands) {
      in.push_back(&values[at(operand)]);
      if (in.back()->any) return Value::nothing_promised();
      exact = exact && !in.back()->interval;
    }
    if (node.op == Op::select && !in[0]->interval) return *in[in[0]->bits ? 1 : 2];
    if (!exact) require_rule(node, type, in);
    if (!exact && node.op == Op::div && in[1]->contains_zero(type))
      return Value::nothing_promised();
    return corners(node, type, in, exact);
  }

  static void require_rule(const Node& node, DType type, const std::vector<const Value*>& in) {
    switch (node.op) {
      case Op::neg:
      case Op::abs:
      case Op::sqrt:
      case Op::floor:
      case Op::exp:
      case Op::log:
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
    throw std::logic_error(
        fmt::format("no rule for {} of inexact {}", name_of(node.op), name_of(type)));
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
    const bool widen = is_transcendental(node.op) && request_.transcendental_ulp > 0;
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
  std::vector<std::optional<ExactSum>> sums_;
};

}  // namespace

std::vector<std::vector<Expected>> reference(const Graph& graph, const std::vector<Column>& inputs,
                                             std::int64_t elements,
                                             const ReferenceRequest& request) {
  std::vector<std::vector<Expected>> expected(graph.outputs.size());
  Evaluator evaluator(graph, inputs, request);
  auto append = [&](std::int64_t first, std::int64_t count, const codegen::Plan& plan,
                    std::int64_t step = 1) {
    const std::vector<Value> values = evaluator.segment(first, count, step, plan);
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const auto id = static_cast<std::size_t>(graph.outputs[o]);
      const Value& v = values[id];
      Expected e{.type = graph.nodes[id].type,
                 .any = v.any,
                 .nan = v.nan,
                 .interval = v.interval,
                 .positive_zero = v.positive_zero,
                 .bits = v.bits,
                 .lo = v.lo,
                 .hi = v.hi};
      if (const auto& sum = evaluator.sums()[id]; sum && !v.any && !v.nan && !sum->is_infinite()) {
        e.is_sum = true;
        e.exact = sum->sum().nearest();
        Real low = sum->sum();
        low -= Real(e.exact);
        e.exact_low = low.nearest();
        e.sum_abs = sum->sum_abs();
      }
      expected[o].push_back(e);
    }
  };
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

double error_in_u(const Expected& expected, Bits actual) {
  const double x = codegen::double_of_bits(expected.type, actual);
  const double off = std::fabs((x - expected.exact) - expected.exact_low);
  return off == 0 ? 0 : off / expected.sum_abs / unit(expected.type);
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
            fmt::format("output {}, segment {} of {}: {}\n", o, s, expected[o].size(), problem);
      }
    }
  }
  if (wrong > kShown) verdict.problems += fmt::format("and {} more\n", wrong - kShown);
  return verdict;
}

}  // namespace chainfold::test
