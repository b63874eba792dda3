// What a plan of a scan decides, as text.
#pragma once

#include <string>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// The lines of the plan's text that are a scan's own.
std::string print_scan(const Plan& plan);

}  // namespace chainfold::codegen
