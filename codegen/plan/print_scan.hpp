// What a plan of a scan decides, as text.
#pragma once

#include <string>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// For print and verify of plans.
std::string print_scan(const Plan& plan);

}  // namespace chainfold::codegen
