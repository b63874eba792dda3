// Folds of sums and means.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// Sum in `type` (a sum_type, or i32 for the low bits of one). Integers wrap. Sums of f32 have
/// states of one f64, and a second result, the same before it is rounded to f32. Sums of f64 are
/// pairs (high, low) by TwoSum (Knuth). So merging n of them costs a rounding error that does not
/// grow with n (to first order). A state is one pair of elements below 2^900, and one of the
/// others, scaled. So no sum of a part leaves the range. A value by itself is added to low
/// first, as Kahan (1965) does, which is one rounding of the value. Then high takes it by TwoSum,
/// whatever the two's magnitudes.
Fold make_sum(DType type);
/// The same for scans: of f64 without what sums need whose parts leave its range.
Fold make_running_sum(DType type);
/// The mean of f64. States are a count and pairs (high, low) of elements below 2^900 and of others,
/// as a sum's. A pair is the exact sum to twice an f64's digits, element by element (Knuth's
/// TwoSum). So the mean is rounded once but for an error of n * 2^-106 of the elements' absolute
/// mean. NaN of nothing.
Fold make_mean();

}  // namespace chainfold::codegen
