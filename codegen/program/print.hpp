// Programs as text.
#pragma once

#include <string>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

std::string print(const Type& type);
/// The stable text of a program; goldens are made of it.
std::string print(const Program& program);
/// One instruction in the same text, on one line (nested regions as "{ ... }").
std::string print(const Program& program, const Launch& launch, const Instr& instr);

}  // namespace chainfold::codegen
