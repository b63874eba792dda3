// The reductions of the papers on sums by tensor cores, as strategies of the plan space.
//
// Sources. [D] Dakkak, Li, Xiong, Gelado, Hwu: Accelerating Reduction and Scan Using Tensor Core
// Units, 2019, section 4. [C] Carrasco, Vega, Navarro: Analyzing GPU Tensor Core Potential for Fast
// Reductions, 2018. [N] Navarro, Carrasco, Barrientos, Riquelme, Vega: GPU Tensor Cores for fast
// Arithmetic Reductions, 2020, section 5.
//
// All work on squares of 16 x 16 elements, V = P * A + C with P of ones: every row of V holds the
// sums of A's columns. A square is two instructions of eight columns each. Where a paper multiplies
// V by ones once more, V is rounded to the inputs' type first (`product`): nothing is promised of
// such sums, so that they run under Accuracy::as_published alone. Without it, lanes add the
// columns. Long chains of products in one accumulator have a bound of their own, and are legal
// where it is within the policy's; shorter ones are added to a compensated state in f32.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/plan/choice.hpp"

namespace chainfold::codegen {

/// What is known of one of them.
struct Published {
  Strategy strategy;
  std::string_view name;    ///< the first word of its plans' text
  std::string_view source;  ///< the paper, by the letters above
  std::string_view serves;  ///< segments
};
/// Its row; null for a strategy of our own.
const Published* published(Strategy strategy);
inline bool is_published(Strategy strategy) { return published(strategy) != nullptr; }
/// The scope_of() (reasons.hpp) of a published strategy: which graphs and segments it serves.
std::string what_serves(Strategy strategy);

/// What of a published plan follows from its choice, bounds included; `widest` elements a load at
/// most. False where the choice is not legal whatever the accuracy.
bool place_published(Plan& plan, const PlanChoice& choice, const Graph& graph, const Target& target,
                     int widest);
/// Whether sums are rounded to the inputs' type on their way.
bool rounds_sums(const Plan& plan);
/// Squares of a segment.
inline std::int64_t squares_of(std::int64_t segment) { return segment / 256; }
/// Warps of a block that use tensor cores (split); the others add by lanes.
int tensor_warps(const Plan& plan);
/// Products that one accumulator takes before it is added to a state, of `links` in a row.
inline std::int64_t chain_of(const Plan& plan, std::int64_t links) {
  return plan.chain == 0 || plan.chain > links ? links : plan.chain;
}
/// Launches of a recurrence that leave one value of 2^40 elements.
int recurrence_launches(int chain);

/// A few choices worth measuring of each that serves, for plan_space.
std::vector<PlanChoice> published_choices(const Graph& graph, const Target& target,
                                          const PlanRequest& request);

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
std::vector<PlanChoice> published_scan_choices(const Graph& graph, const Target& target,
                                               const PlanRequest& request);
std::string print_published_scan(const Plan& plan);
void verify_published_scan(const Plan& plan, const Graph& graph, const Target& target);

/// For print and verify of plans.
std::string print_published(const Plan& plan);
void verify_published(const Plan& plan, const Graph& graph, const Target& target);

}  // namespace chainfold::codegen
