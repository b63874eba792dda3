// Choices as text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/fields.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

/// "rows warps=8 depth=1 rows=4 bytes=16 mma", "parts warps=8 depth=4 parts=2112 bytes=16 simt",
/// "staged warps=8 lanes=8 rows=4 stages=2 burst=256 late=6 blocks=2 bytes=16 mma", "columns
/// warps=8 depth=8 runs=1 parts=528 bytes=16 simt": a strategy, the decisions that it knows, and
/// its unit.
std::string to_text(const PlanChoice& choice);
/// The first words of all plans' texts: what a strategy is called.
std::vector<std::string_view> strategy_names();
/// The choice with this text. Throws UserError(invalid_argument) naming what is wrong.
PlanChoice parse_choice(std::string_view text);
/// In the order of the strategy's texts; `mma` or `simt` ends every text and is none of them.
std::span<const PlanField> fields_of(Strategy strategy);

}  // namespace chainfold::codegen
