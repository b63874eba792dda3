// Folds of statistics: standard deviation, covariance, correlation, skewness, kurtosis.
#pragma once

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// The root of the variance of f64, whatever the variance: deviations are counted in units.
Fold make_deviation();
/// Two variables in one type (f32, f64 or i64): their covariance over the count and their
/// correlation, within [-1, 1], in f64. NaN of nothing, and the correlation where one variable has
/// one value alone. States (count, means, sums of products of deviations) are merged pairwise in
/// f64 (Chan, Golub and LeVeque, 1979). Means of f64 and i64 are kept as differences from the first
/// element. Deviations of f64 are in units, so that a correlation does not leave the range on its
/// way.
Fold make_comoments(DType type);
/// The skewness and the excess kurtosis of a population in f64. Sums of powers of deviations up to
/// the fourth are merged pairwise, and counted as above. The merge is Pebay's ("Formulas for
/// robust, one-pass parallel computation of covariances and arbitrary-order statistical moments",
/// 2008, section 2.1). NaN where all values are the same.
Fold make_shape(DType type);

}  // namespace chainfold::codegen
