// Choices as text.
#pragma once

#include <string>
#include <string_view>

#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

/// A choice as text: a strategy, the decisions that it knows, and its unit. "hints=off" behind it
/// leaves out what hints.hpp says. Examples:
/// - "rows warps=8 depth=1 rows=4 bytes=16 mma"
/// - "parts warps=8 depth=4 parts=2112 bytes=16 simt"
/// - "staged warps=8 lanes=8 rows=4 stages=2 burst=256 late=6 blocks=2 bytes=16 mma"
/// - "columns warps=8 depth=8 runs=1 parts=528 bytes=16 simt"
std::string to_text(const PlanChoice& choice);
/// The choice with this text. Throws UserError(invalid_argument) naming what is wrong.
PlanChoice parse_choice(std::string_view text);

}  // namespace chainfold::codegen
