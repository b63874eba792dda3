// Where the smallest and largest elements are, of data that make it hard to tell.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/codegen/base/types.hpp"
#include "chainfold/tests/support/end_values.hpp"

namespace chainfold::test {

/// argmin and argmax, plain and of the elements that a filter leaves, beside the largest value, of
/// segments of `n` elements (0: of the whole of some), against a loop. Data are random, few values,
/// all equal, all the worst there is, ascending, descending, now and then NaN, or NaN alone. What
/// was wrong first, with its seed; empty if nothing was.
std::string check_places(DType type, std::int64_t n, const Executor& executor);

}  // namespace chainfold::test
