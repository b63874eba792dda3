// What every program keeps to (the rules at the head of program.hpp).
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Throws InternalError, with the print, at the first violation of the rules above: types,
/// visibility, uniformity of conditions, barriers in non-uniform places, waits that might not end
/// (look_back_rules.hpp), fragments against their rows, buffers and parameters in range, group and
/// width powers of two, widths within 16 bytes and, unless they may lie anywhere, within the
/// buffer's alignment where the base is a constant.
void verify(const Program& program);

}  // namespace chainfold::codegen
