// The fold of linear recurrences.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// How a recurrence runs: from the last element to the first, from a given value before all.
struct RecurrenceForm {
  bool reverse = false, initial = false;
};
/// The recurrence y = a y + x of the operands (a, x) in `type` (f32 or f64), from 0 or the given
/// value on; of nothing that value. A state is the product of its elements' a and the y that they
/// come to from 0 (Blelloch, "Prefix sums and their applications", 1990, section 1.4), f64 in f32,
/// and pairs of f64 in f64. Both have an exponent of their own, so that no product overflows, nor
/// is an infinity multiplied by 0: of n elements whose exact y is below the type's largest number
/// it is within 2 u of the sum over j of |a_n ... a_(j+1) x_j|, and half the smallest number, as
/// long as that sum is below an f64's largest one.
Fold make_recurrence(DType type, const RecurrenceForm& form);

}  // namespace chainfold::codegen
