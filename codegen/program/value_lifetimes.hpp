// Lifetimes of a program's values: how many registers a lane needs at once.
#pragma once

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// 32-bit registers of a lane that the values of `region` need at once if instructions stay in
/// their order. Uniform values and booleans have registers of their own and do not count. A
/// compiler that moves loads ahead of others' uses needs more.
int peak_registers(const Program& program, const Region& region);

}  // namespace chainfold::codegen
