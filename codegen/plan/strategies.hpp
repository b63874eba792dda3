// The table of strategies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// All strategies, in the order of their enumerators.
std::span<const StrategyRow> strategies();
const StrategyRow& row_of(Strategy strategy);
/// The first word of a strategy's plans: "rows".
std::string_view name_of(Strategy strategy);
/// Those of all strategies.
std::vector<std::string_view> strategy_names();
/// What a strategy serves, in a sentence without its period: partitions and sizes, graphs, types,
/// alignment and targets, and what its fields mean.
std::string describe(Strategy strategy);

}  // namespace chainfold::codegen
