// What every program keeps to (the rules at the head of program.hpp).
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Throws InternalError, with the print, at the first violation of the rules above. It checks:
/// - types and visibility
/// - the uniformity of conditions, and barriers in non-uniform places
/// - waits that might not end (look_back_rules.hpp)
/// - fragments against their rows
/// - buffers and parameters, which are in range
/// - group and width, which are powers of two
/// - widths, which are within 16 bytes
/// - accesses at constant places, which are aligned unless they may lie anywhere.
void verify(const Program& program);

}  // namespace chainfold::codegen
