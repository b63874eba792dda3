// Plans of columns: how lanes lie on the matrix, and what follows from a choice.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// After how many rows the next one begins as far off a load's boundary (columns); a power of two.
int phases_of(const Plan& plan);
/// Whether a plan of columns may take its rows in phases (ColumnsPlan::phases). A block's warps
/// take whole turns of phases, loads are of several columns, there is one input, and folds need no
/// order.
bool phases_fit(const Plan& plan, const Graph& graph);
/// Shared memory of a block of columns: states of its warps on their way to the first one.
std::int64_t columns_bytes(const Plan& plan);
/// Loads in the text of one batch.
inline constexpr int kMostColumnLoads = 64;
/// Lanes side by side on a row.
int group_of(std::int64_t columns, int width);
/// The lanes' places for loads of `width` columns.
void lie(Plan& plan, int width, int runs);

/// Its row of the table of strategies.
StrategyRow columns_strategy();

}  // namespace chainfold::codegen
