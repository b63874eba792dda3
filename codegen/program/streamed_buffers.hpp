// What stores that stream go to.
#pragma once

#include <set>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// The buffers that stores of a region stream to, those of inner regions included.
std::set<int> streamed_buffers(const Region& region);

}  // namespace chainfold::codegen
