// Pass: additions of zeros.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Pass. Before: any program. After: no float is added to +0.0 in vain: such a sum's value is used
/// in its place where that cannot be -0.0, which no addition of +0.0 leaves. Every value is the
/// same, bit for bit (NaN payloads and quiet bits aside).
void drop_zeros(Program& program);

}  // namespace chainfold::codegen
