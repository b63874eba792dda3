// The laws of a user's monoid, tried on states that occur.
//
// A segment is cut anywhere. So results depend on the plan if a merge is not associative, or if
// the initial state is no identity of it. Nothing of that shows while a
// kernel is compiled; so the laws are tried before, on states of random elements and merges of
// those. Fields at random would be no states: many a merge is lawful for those alone that lift
// makes.
#pragma once

#include <string_view>
#include <vector>

#include "chainfold/codegen/graph/fold.hpp"

namespace chainfold::codegen {

/// Tries that merge is associative and that the initial state is its identity on both sides. Of a
/// commutative fold it also tries that merge(a, b) is merge(b, a). Integers are compared exactly,
/// and NaN equals NaN. Floats may differ by 2^-10 (f16: 2^-8, bf16: 2^-5) of the largest number in
/// the states compared. States that have overflowed are left out. `positions`: which operands are
/// cf::index(), numbers that follow one another. Elements are the same in every process. Takes less
/// than a millisecond, and nothing for a fold that was found lawful before. Throws
/// UserError(invalid_argument) about the monoid `word` with the states that break a law.
void check_laws(const Fold& fold, std::string_view word, const std::vector<bool>& positions);

}  // namespace chainfold::codegen
