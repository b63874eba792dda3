#include "chainfold/codegen/base/size_expr.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {

// `op` is one of '#' (constant), '$' (parameter), '+', '-', '*', '/' (ceil_div), 'M' (max)
// and 'm' (min).
struct SizeExpr::Node {
  char op = '#';
  std::int64_t value = 0;
  int index = 0;
  std::string name;
  std::shared_ptr<const Node> a, b;

  [[nodiscard]] std::int64_t evaluate(std::span<const std::uint64_t> params) const;
  [[nodiscard]] std::string print(int context) const;
  [[nodiscard]] int params() const {
    return a ? std::max(a->params(), b->params()) : op == '$' ? index + 1 : 0;
  }
};

namespace {

std::int64_t apply(char op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case '+': overflow = __builtin_add_overflow(a, b, &result); break;
    case '-': overflow = __builtin_sub_overflow(a, b, &result); break;
    case '*': overflow = __builtin_mul_overflow(a, b, &result); break;
    case '/':
      if (b <= 0)
        throw InternalError(fmt::format("ceil_div({}, {}): the divisor must be positive", a, b));
      result = a / b + (a % b > 0 ? 1 : 0);
      break;
    case 'm': result = std::min(a, b); break;
    default: result = std::max(a, b); break;
  }
  if (overflow) throw InternalError(fmt::format("size {} {} {} does not fit 64 bits", a, op, b));
  return result;
}

int precedence(char op) { return op == '*' ? 2 : op == '+' || op == '-' ? 1 : 3; }

}  // namespace

std::int64_t SizeExpr::Node::evaluate(std::span<const std::uint64_t> params) const {
  if (op == '#') return value;
  if (op == '$') {
    const auto at = static_cast<std::size_t>(index);
    if (at >= params.size()) {
      throw InternalError(
          fmt::format("size parameter {} (\"{}\") was given no value", index, name));
    }
    return static_cast<std::int64_t>(params[at]);
  }
  return apply(op, a->evaluate(params), b->evaluate(params));
}

std::string SizeExpr::Node::print(int context) const {
  if (op == '#')
    return context > 0 && value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
  if (op == '$') return name;
  if (op == '/') return fmt::format("ceil_div({}, {})", a->print(0), b->print(0));
  if (op == 'M' || op == 'm')
    return fmt::format("{}({}, {})", op == 'M' ? "max" : "min", a->print(0), b->print(0));
  const int own = precedence(op);
  std::string text = fmt::format("{} {} {}", a->print(own), op, b->print(own + 1));
  return own < context ? "(" + text + ")" : text;
}

SizeExpr::SizeExpr(std::int64_t constant) {
  Node node;
  node.value = constant;
  node_ = std::make_shared<const Node>(std::move(node));
}
SizeExpr::SizeExpr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

SizeExpr SizeExpr::param(int index, std::string name) {
  Node node;
  node.op = '$';
  node.index = index;
  node.name = std::move(name);
  return SizeExpr(std::make_shared<const Node>(std::move(node)));
}

SizeExpr SizeExpr::binary(char op, SizeExpr a, SizeExpr b) {
  if (a.node_->op == '#' && b.node_->op == '#') return {apply(op, a.node_->value, b.node_->value)};
  Node node;
  node.op = op;
  node.a = std::move(a.node_);
  node.b = std::move(b.node_);
  return SizeExpr(std::make_shared<const Node>(std::move(node)));
}

SizeExpr operator+(SizeExpr a, SizeExpr b) {
  return SizeExpr::binary('+', std::move(a), std::move(b));
}
SizeExpr operator-(SizeExpr a, SizeExpr b) {
  return SizeExpr::binary('-', std::move(a), std::move(b));
}
SizeExpr operator*(SizeExpr a, SizeExpr b) {
  return SizeExpr::binary('*', std::move(a), std::move(b));
}
SizeExpr ceil_div(SizeExpr a, SizeExpr b) {
  return SizeExpr::binary('/', std::move(a), std::move(b));
}
SizeExpr max(SizeExpr a, SizeExpr b) { return SizeExpr::binary('M', std::move(a), std::move(b)); }
SizeExpr min(SizeExpr a, SizeExpr b) { return SizeExpr::binary('m', std::move(a), std::move(b)); }

std::int64_t SizeExpr::evaluate(std::span<const std::uint64_t> params) const {
  return node_->evaluate(params);
}
int SizeExpr::params() const { return node_->params(); }
std::string SizeExpr::print() const { return node_->print(0); }

}  // namespace chainfold::codegen
