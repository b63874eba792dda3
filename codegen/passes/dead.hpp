// Pass: instructions that nothing needs.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// Pass. Before: any program. After: instructions without effect whose results nothing uses are
/// gone.
void eliminate_dead(Program& program);

}  // namespace chainfold::codegen
