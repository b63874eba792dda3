// Lambda: how one is written, step by step, and what it gives.
#include "chainfold/codegen/graph/lambda.hpp"

#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {

DType Lambda::type(int value) const {
  const auto v = static_cast<std::size_t>(value);
  return v < params.size() ? params[v] : steps[v - params.size()].type;
}

int Lambda::constant(DType type, Bits bits) {
  steps.push_back({.op = Op::add, .type = type, .operands = {}, .bits = bits});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

int Lambda::apply(Op op, std::vector<int> operands) {
  const int values = static_cast<int>(params.size() + steps.size());
  bool legal = !is_cast(op) && static_cast<int>(operands.size()) == arity(op);
  for (int operand : operands) legal = legal && operand >= 0 && operand < values;
  if (!legal) throw InternalError(fmt::format("a lambda applies {} wrongly", name_of(op)));
  const DType in = type(operands.back());
  for (std::size_t i = op == Op::select ? 1 : 0; i < operands.size(); ++i) {
    legal = legal && type(operands[i]) == in;
  }
  if (op == Op::select) legal = legal && type(operands[0]) == DType::boolean;
  if (!legal || !is_defined(op, in)) {
    throw InternalError(fmt::format("a lambda applies {} to {}", name_of(op), name_of(in)));
  }
  const DType out = is_test(op) ? DType::boolean : in;
  steps.push_back({.op = op, .type = out, .operands = std::move(operands), .bits = 0});
  return values;
}

int Lambda::convert(int value, DType to) {
  if (type(value) == to) return value;
  steps.push_back({.op = Op::convert, .type = to, .operands = {value}, .bits = 0});
  return static_cast<int>(params.size() + steps.size()) - 1;
}

std::vector<Bits> evaluate(const Lambda& lambda, std::span<const Bits> arguments) {
  if (arguments.size() != lambda.params.size()) {
    throw InternalError(fmt::format("a lambda of {} parameters is called with {}",
                                    lambda.params.size(), arguments.size()));
  }
  std::vector<Bits> values(arguments.begin(), arguments.end());
  for (const Lambda::Step& step : lambda.steps) {
    if (step.operands.empty()) {
      values.push_back(step.bits);
      continue;
    }
    Bits in[3] = {};
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      in[i] = values[static_cast<std::size_t>(step.operands[i])];
    }
    const DType type = lambda.type(step.operands.back());
    values.push_back(evaluate(step.op, type, step.type, in[0], in[1], in[2]));
  }
  std::vector<Bits> results;
  for (int result : lambda.results) results.push_back(values[static_cast<std::size_t>(result)]);
  return results;
}

}  // namespace chainfold::codegen
