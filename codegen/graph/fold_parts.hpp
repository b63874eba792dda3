// What several of the built-in folds are made with.
#pragma once

#include <string_view>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/lambda.hpp"

namespace chainfold::codegen {

/// A fold whose state is the value itself and whose merge is one operation.
Fold plain(std::string_view name, DType type, Op op, Bits neutral);
/// Throws InternalError where there is no such fold in the type.
void require(bool legal, std::string_view fold, DType type);
/// The constant as an f64.
int real(Lambda& lambda, double value);

/// b - a of i64 as an f64, rounded once: differences of up to 2^63 are exact before.
int difference(Lambda& lambda, int a, int b);

/// a + b, rounded, and what rounding took away (Knuth's TwoSum).
struct TwoSum {
  int sum, error;
};
TwoSum two_sum(Lambda& lambda, int a, int b);
/// The value where it is finite, else 0.
int if_finite(Lambda& lambda, int value);

/// high + low, a sum.
struct Pair {
  int high, low;
};
/// The low part of the sum is at most half an ulp of the high one, and 0 where that is not finite.
Pair add_pairs(Lambda& lambda, Pair a, Pair b);

}  // namespace chainfold::codegen
