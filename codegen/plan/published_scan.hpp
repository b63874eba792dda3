// The published scans ([D] 5, see published.hpp), which work on squares in row-major order: A * U,
// and (L * A) * 1 where rows follow each other.
//
// Their decisions are those of the reductions: `chain` 0 is the paper's carry in the accumulator, 1
// a compensated state; `product` 1 multiplies L * A by ones, for which it is rounded, else lanes
// add. Nothing guards them, so that they are legal for NonFinite::assume_finite alone.
#pragma once

#include <cstdint>
#include <string>

#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

/// The published scans ([D] 5), which work on squares in row-major order: A * U, and (L * A) * 1
/// where rows follow each other. Their decisions are those of the reductions: `chain` 0 is the
/// paper's carry in the accumulator, 1 a compensated state; `product` 1 multiplies L * A by ones,
/// for which it is rounded, else lanes add. Nothing guards them, so that they are legal for
/// NonFinite::assume_finite alone.
const Published* published_scan(Strategy strategy);
inline bool is_published_scan(Strategy strategy) { return published_scan(strategy) != nullptr; }
std::string what_serves_scan(Strategy strategy);
bool place_published_scan(Plan& plan, const PlanChoice& choice, const Graph& graph,
                          const Target& target, int widest);
std::string print_published_scan(const Plan& plan);
void verify_published_scan(const Plan& plan, const Graph& graph, const Target& target,
                           const RequireRule& require);
/// All of them.
inline constexpr Published kPublishedScans[] = {
    {Strategy::scan16, "scan16", "[D] 5.1, Scan16", "segments of 16"},
    {Strategy::scan16n, "scan16n", "[D] 5.1, Scan16N (strided)", "segments of a multiple of 16"},
    {Strategy::scan256, "scan256", "[D] 5.1, Scan256", "segments of 256"},
    {Strategy::scan256n, "scan256n", "[D] 5.1, Scan256N", "segments of a multiple of 256"},
    {Strategy::scan_block256n, "scan_block256n", "[D] 5.2, block-level Scan256N",
     "segments of a multiple of 256"},
    {Strategy::scan_grid256n, "scan_grid256n", "[D] 5.3, grid-level scan",
     "the whole input, where the sum itself is the output"},
};
/// Whether a published scan serves segments of s elements; 0: the whole input.
bool serves_published_scan(Strategy strategy, std::int64_t s);
/// The matrix instruction for the one running sum of a graph, or -1.
int published_scan_mma_row(Strategy strategy, const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
