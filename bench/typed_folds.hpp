// Folds and scans that are measured of every type.
#pragma once

#include "chainfold/bench/op.hpp"
#include "chainfold/chainfold.hpp"

namespace chainfold::bench {

/// Whether typed_fold() has an operation of a type.
bool has_every_type(Op op, DType type) noexcept;
/// The computation, with the type that its expression has. Throws std::logic_error where there is
/// none.
Computation typed_fold(Op op, DType type, const dsl::Partition& partition);

}  // namespace chainfold::bench
