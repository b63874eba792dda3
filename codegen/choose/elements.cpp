// The decisions of segments of one element: how wide a load is, and how many are under way.
#include "chainfold/codegen/choose/elements.hpp"

#include <algorithm>

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"

namespace chainfold::codegen {

namespace {

/// One load a lane of small blocks is what memory likes best where as much is written as read (2
/// GiB of f16 on an H200, of the ceiling: 1.003 by one load a lane of four warps, 0.995 by two,
/// 0.98 by four; f32 1.002, 0.994, 0.98; i8 into i32 1.008, 1.000, 0.985).
constexpr int kLoads = 1, kWarps = 4;

}  // namespace

PlanChoice elements_choice(const Target& target) {
  PlanChoice choice;
  choice.strategy = Strategy::elements;
  choice.mma = false;
  choice.warps = std::min(kWarps, target.max_warps);
  choice.depth = kLoads;
  choice.bytes = target.vector_bytes;
  return choice;
}

}  // namespace chainfold::codegen
