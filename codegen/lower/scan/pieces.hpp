// Pieces of a CPU's segments in rows that lie on lines of memory.
#pragma once

#include <cstdint>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// Whether rows begin with whole lines of memory, and lie as they come. Rows are counted from where
/// runs of so many elements begin, one behind the other (0: from the beginning of the whole input).
bool rows_on_lines(const Plan& plan, std::int64_t run);

}  // namespace chainfold::codegen
