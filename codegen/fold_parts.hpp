// What several of the built-in folds are made with.
#pragma once

#include <string_view>

#include "chainfold/codegen/fold.hpp"

namespace chainfold::codegen {

/// A fold whose state is the value itself and whose merge is one operation.
Fold plain(std::string_view name, DType type, Op op, Bits neutral);
/// Throws InternalError where there is no such fold in the type.
void require(bool legal, std::string_view fold, DType type);
/// The constant as an f64.
int real(Lambda& lambda, double value);

}  // namespace chainfold::codegen
