// Where the smallest and largest elements are, of data that make it hard to tell: random, few
// values, all equal, zeros of both signs, all the worst or the best there is, ascending,
// descending, now and then NaN, or NaN alone.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/tests/support/end_values.hpp"

namespace chainfold::test {

/// argmin and argmax, plain and of the elements that a filter leaves, beside the largest value, of
/// segments of `n` elements (0: of the whole of some), against a loop. What was wrong first, with
/// its seed; empty if nothing was.
std::string check_places(DType type, std::int64_t n, const Executor& executor);
/// The same of running places: inclusive and exclusive, of a filter's elements, and backward.
std::string check_running_places(DType type, std::int64_t n, const Executor& executor);

}  // namespace chainfold::test
