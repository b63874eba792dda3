// The fold of variances.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// The sum of squared deviations from the mean over the count (population variance) in `type` (f32
/// or f64), or in f64 of i64: states (count, mean, M2) merged by Chan, Golub and LeVeque's formula
/// (1979) in f64, where the mean of i64 and f64 is one of them and a difference from it. Of
/// nothing: NaN. That of f32 has a second result, the same in f64.
Fold make_variance(DType type);

}  // namespace chainfold::codegen
