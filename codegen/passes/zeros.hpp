// Pass: additions of zeros.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Pass. Before: any program. After: no float is added to +0.0 in vain. The float replaces the sum
/// where it cannot be -0.0, the one number that such an addition changes. Every value is the same,
/// bit for bit (NaN payloads and quiet bits aside).
void drop_zeros(Program& program);

}  // namespace chainfold::codegen
