// The decisions of segments of one element: how wide a load is, and how many are under way.
#include "chainfold/codegen/choose/elements.hpp"

#include <algorithm>

#include "chainfold/codegen/choose/tuned.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

PlanChoice elements_choice(const Target& target) {
  const TunedElements& tuned = tuned_for(target).elements;
  PlanChoice choice;
  choice.strategy = Strategy::elements;
  choice.mma = false;
  choice.warps = std::min(tuned.warps, target.max_warps);
  choice.depth = tuned.loads;
  choice.bytes = target.vector_bytes;
  return choice;
}

}  // namespace chainfold::codegen
