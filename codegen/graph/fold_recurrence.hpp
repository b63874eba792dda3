// The fold of linear recurrences.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// How a recurrence runs: from the last element to the first, from a given value before all.
struct RecurrenceForm {
  bool reverse = false, initial = false;
};
/// The recurrence y = a y + x of the operands (a, x) in `type` (f32 or f64). It starts from 0 or
/// the given value, which is also its value of nothing. A state is the product of its elements' a
/// and the y that they come to from 0. This form is Blelloch's ("Prefix sums and their
/// applications", 1990, section 1.4). The two are f64 for f32, and pairs of f64 for f64. Both have
/// an exponent of their own, so that no product overflows, nor is an infinity multiplied by 0.
///
/// Of n elements let S be the sum over j of |a_n ... a_(j+1) x_j|. Let the exact y be below the
/// type's largest number, and S below an f64's. Then the result is within 2 u of S, and half the
/// smallest number, of the exact y.
Fold make_recurrence(DType type, const RecurrenceForm& form);

}  // namespace chainfold::codegen
