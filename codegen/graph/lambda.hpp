// Lambda: a function of a few scalars, as data.
#pragma once

#include <span>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

/// A pure function of scalars: parameters, then steps in SSA order. Value i < params.size() is a
/// parameter, others the result of step i - params.size().
struct Lambda {
  struct Step {
    Op op = Op::add;
    DType type = DType::i64;    ///< of the result
    std::vector<int> operands;  ///< empty: a constant
    Bits bits = 0;              ///< of the constant
  };
  std::vector<DType> params;
  std::vector<Step> steps;
  std::vector<int> results;

  [[nodiscard]] DType type(int value) const;
  // Writing one:
  int constant(DType type, Bits bits);
  int apply(Op op, std::vector<int> operands);  ///< result type from the operands
  int convert(int value, DType type);
};
/// Evaluates a Lambda on scalars with base/ops.hpp's definition.
std::vector<Bits> evaluate(const Lambda& lambda, std::span<const Bits> arguments);

}  // namespace chainfold::codegen
