// The suite `plans`: cases and plans of a list, for whoever looks for a better plan.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {

/// The way that a plan's text pins; throws what is wrong with the text.
Way pinned_way(const std::string& plan);

/// The cases of a list with a line for each way to compute one:
///
///     OP IN OUT SEGMENT ELEMENTS [WAY]
///     inclusive_sum f16 f16 whole 65536 propagate warps=8 depth=2 direct=1
///
/// OP is a row's `op`; SEGMENT a number, `whole`, or `columns=C`; ELEMENTS 0 as many as `bytes`
/// bytes hold of IN or, of scans, of the wider of IN and OUT. WAY is a plan's text, the name of a
/// peer on that machine (`cub`, `cub-keys`, `cub-offsets`; on a CPU `openmp-simd` of folds,
/// `std-par` of scans), or nothing: what is chosen. Lines of one case that follow each other are
/// timed side by side. Empty lines and what stands behind `#` are left out. Throws
/// std::runtime_error that names the line which is none of this.
std::vector<NamedCase> plans_cases(std::istream& list, std::int64_t bytes, bool gpu);

}  // namespace chainfold::bench
