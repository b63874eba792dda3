// The suite `papers`: the experiments of the papers on sums and scans by tensor cores, with the
// strategies that compute as they do (docs/papers.md, codegen/plan/published.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "chainfold/bench/suite_reduce.hpp"

namespace chainfold::bench {

/// All experiments that the target has plans for, the cheapest first, with at most `bytes` bytes of
/// input. Each case carries its ways. On a CPU, which has none of the strategies, what is left are
/// the whole sum and the scans, by our own plan and by a peer.
///
/// variants: sums of the whole input, by each variant, over growing inputs of both distributions.
/// recurrence, single_pass: block sizes and lengths of chains.
/// split: shares of the elements that tensor cores take.
/// segments: all segment sizes over one input.
/// scan_variants: scans of the whole input, and of one segment of that length, as `variants`.
/// scan_segments: scans of all segment sizes over one input.
std::vector<NamedCase> papers_cases(std::int64_t bytes, const Target& target);

}  // namespace chainfold::bench
