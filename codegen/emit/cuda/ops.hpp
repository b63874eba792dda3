// The element-wise operations of base/ops.hpp as CUDA expressions.
#pragma once

#include <span>
#include <string>

#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::codegen::cuda {

/// `op` on one element; each of `args` is a name, a cast or a call.
std::string expression(Op op, DType type, DType result, std::span<const std::string> args);

}  // namespace chainfold::codegen::cuda
