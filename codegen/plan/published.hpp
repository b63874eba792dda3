// The reductions of the papers on sums by tensor cores, as strategies of the plan space.
//
// Sources. [D] Dakkak, Li, Xiong, Gelado, Hwu: Accelerating Reduction and Scan Using Tensor Core
// Units, 2019, section 4. [C] Carrasco, Vega, Navarro: Analyzing GPU Tensor Core Potential for Fast
// Reductions, 2018. [N] Navarro, Carrasco, Barrientos, Riquelme, Vega: GPU Tensor Cores for fast
// Arithmetic Reductions, 2020, section 5.
//
// All work on squares of 16 x 16 elements: V = P * A + C with P of ones. Every row of V holds the
// sums of A's columns. A square is two instructions of eight columns each.
//
// Where a paper multiplies V by ones once more, V is rounded to the inputs' type first (`product`).
// Nothing is promised of such sums, so that they run under Accuracy::as_published alone. Without
// `product`, lanes add the columns. Long chains of products in one accumulator have a bound of
// their own, and are legal where it is within the policy's. Shorter ones are added to a compensated
// state in f32.
//
// [D] has one sentence on irregular segments (footnote 4): they are padded and are regular then.
// `padded` pads sixteen at a time, to the longest of them, in registers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategy.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// What is known of one of them.
struct Published {
  Strategy strategy;
  std::string_view name;    ///< the first word of its plans' text
  std::string_view source;  ///< the paper, by the letters above
  std::string_view serves;  ///< segments
  std::span<const PlanField> fields;
};
/// Its row; null for a strategy of our own.
const Published* published(Strategy strategy);
/// What of a published plan follows from its choice, bounds included; `widest` elements a load at
/// most. False where the choice is not legal whatever the accuracy.
bool derive_published(Plan& plan, const PlanChoice& choice, const Graph& graph,
                      const Target& target, int widest);
/// Squares of a segment.
inline std::int64_t squares_of(std::int64_t segment) { return segment / 256; }
/// Warps of a block that use tensor cores (split); the others add by lanes.
int tensor_warps(const Plan& plan);
/// Products that one accumulator takes before it is added to a state, of `links` in a row.
inline std::int64_t chain_of(const Plan& plan, std::int64_t links) {
  return plan.published.chain == 0 || plan.published.chain > links ? links : plan.published.chain;
}
/// Elements of a segment that offsets tell, at most, as bounds have them.
inline constexpr std::int64_t kMostOfSegment = std::int64_t{1} << 40;
/// What a padded plan's sum of a segment of so many elements errs, as FoldPlan has it for any.
double padded_bound_u(const Plan& plan, std::int64_t elements);
/// Launches of a recurrence that leave one value of 2^40 elements.
int recurrence_launches(int chain);
/// For print and verify of plans.
std::string print_published(const Plan& plan);
void verify_published(const Plan& plan, const Graph& graph, const Target& target,
                      const RequireRule& require);
/// Elements of a row of a square, and of a square.
inline constexpr std::int64_t kSquareRow = 16, kSquare = 256;
/// Whether a published reduction serves segments of s elements; 0: the whole input.
bool serves_published(Strategy strategy, std::int64_t s);
/// The matrix instruction for the one sum of a graph, or -1.
int published_mma_row(const Graph& graph, const Target& target);

/// A published plan where its bound is within its policy's; nothing where it is not.
std::optional<Plan> within_policy(Plan plan, const PlanSite& site);
/// Their rows of the table of strategies.
std::vector<StrategyRow> published_strategies();

}  // namespace chainfold::codegen
