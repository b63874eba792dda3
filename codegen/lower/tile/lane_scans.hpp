// Scans of one number a lane.
#pragma once

#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::codegen {

/// Of each lane the sum, or the largest, of all lanes up to it.
ValueId sum_so_far(Builder& b, ValueId value);
ValueId largest_so_far(Builder& b, ValueId value);

}  // namespace chainfold::codegen
