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

/// Its row; null for another strategy.
const Published* published_scan(Strategy strategy);
/// What of a published scan follows from its choice, bounds included. False where the choice is not
/// legal whatever the accuracy.
bool derive_published_scan(Plan& plan, const PlanChoice& choice, const Graph& graph,
                           const Target& target, int widest);
/// For print and verify of plans.
std::string print_published_scan(const Plan& plan);
void verify_published_scan(const Plan& plan, const Graph& graph, const Target& target,
                           const RequireRule& require);
/// All of them.
std::span<const Published> published_scans();
/// Whether a published scan serves segments of s elements; 0: the whole input.
bool serves_published_scan(Strategy strategy, std::int64_t s);
/// The matrix instruction for the one running sum of a graph, or -1.
int published_scan_mma_row(Strategy strategy, const Graph& graph, const Target& target);

/// Their rows of the table of strategies.
std::vector<StrategyRow> published_scan_strategies();

}  // namespace chainfold::codegen
