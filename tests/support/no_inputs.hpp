// Computations without inputs, whose elements a launch only counts: they are launched, prepared and
// tuned as others are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

/// Launches a kernel without inputs of so many elements: its outputs.
using NoInputsLaunch = std::function<std::vector<Column>(
    const Kernel& kernel, const Computation& computation, std::int64_t elements)>;

/// Counts, sums and scans of indices over whole inputs, segments with and without a tail, and
/// columns, against loops; and what prepare(), scratch_bytes(), explain() and run() say. What is
/// wrong, empty if nothing is. `most`: elements at most.
std::string check_no_inputs(const Options& options, std::int64_t most,
                            const NoInputsLaunch& launch);

/// Segments, rows or columns, that so many elements are.
std::int64_t segments_of(const Computation& computation, std::int64_t elements);
/// On host memory.
std::vector<Column> launch_on_host(const Kernel& kernel, const Computation& computation,
                                   std::int64_t elements);

}  // namespace chainfold::test
