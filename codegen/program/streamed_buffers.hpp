// What stores with Store::streams go to.
#pragma once

#include <set>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

/// The buffers that stores with Store::streams of a region go to, those of inner regions included.
std::set<int> streamed_buffers(const Region& region);

}  // namespace chainfold::codegen
