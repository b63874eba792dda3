// What each strategy serves, in words.
#pragma once

#include <string>

#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// What a strategy serves, in a sentence without its period: partitions and sizes, graphs, types,
/// alignment and targets, and what its fields mean. Of every strategy, published or our own.
std::string scope_of(Strategy strategy);

}  // namespace chainfold::codegen
