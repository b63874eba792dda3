// Scans of sums that matrix instructions take, by name as programs() are; for plans that say mma
// and for the published scans.
#pragma once

#include <vector>

#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {

/// program() finds them, too.
const std::vector<TestProgram>& tensor_scans();

}  // namespace chainfold::test
