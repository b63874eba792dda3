// The strategies of scans, as rows of the table.
#pragma once

#include <vector>

#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// Of scans, each of which scan.hpp describes.
std::vector<StrategyRow> scan_strategies();

}  // namespace chainfold::codegen
