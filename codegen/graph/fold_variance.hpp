// The fold of variances.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// The population variance, which is the sum of squared deviations from the mean over the count. It
/// is in `type` (f32 or f64), or in f64 of i64. States (count, mean, M2) are merged in f64 by Chan,
/// Golub and LeVeque's formula (1979). The mean of i64 and f64 is one of their elements and a
/// difference from it. Of nothing: NaN. That of f32 has a second result, the same in f64.
Fold make_variance(DType type);

}  // namespace chainfold::codegen
