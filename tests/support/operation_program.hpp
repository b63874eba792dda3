// Programs that run every element-wise operation once: what each executor is held against.
#pragma once

#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::test {

/// One operation of an operation program; output k of the program holds the results of case k.
struct OperationCase {
  codegen::Op op = codegen::Op::add;
  DType result =
      DType::f32;  ///< differs from the operands' type for comparisons, convert, is_finite
};

/// Every operation that is defined on `type`: convert to each type, and select.
std::vector<OperationCase> operation_cases(DType type);

/// A program of one launch whose warp w of block b applies every case to elements
/// [(b * warps + w) * 32 * width, ...) of its inputs: a, b and c of `type` (buffers 0 to 2) and the
/// booleans `condition` (3) that select asks; buffers 4 and up are the cases' outputs. The element
/// count must be a multiple of 32 * width * warps and is the parameter `elements`. `width` is a
/// power of two, at most 16 bytes of `type`.
codegen::Program operation_program(DType type, int width, int warps = 1);

}  // namespace chainfold::test
