// What plans of all our own folds share.
#pragma once

#include <optional>
#include <string>

#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"

namespace chainfold::codegen {

/// The plan with its hints, units, guard and bounds; nothing where it errs more than its policy
/// allows.
std::optional<Plan> finish_folds(Plan plan, const PlanChoice& choice, const PlanSite& site);
/// The line of a plan's text on lanes and rows.
std::string print_lanes(const Plan& plan);

}  // namespace chainfold::codegen
