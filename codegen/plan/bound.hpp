// What sums may err: proven bounds, and what a policy allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/request.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The error that fold `fold` is proven to keep to, as FoldPlan tells it: 0 where it is exact,
/// nothing where none is proven.
std::optional<double> proven_bound(const Plan& plan, const Graph& graph, std::size_t fold);
/// Whether a node reads more of a sum than its rounded value (Node::part), and additions of rounded
/// values may lose its digits. Of equal elements they keep those of 2^13: an f16 has 11 digits, an
/// f32 24.
bool asks_for_digits(const Graph& graph, const Plan& plan);
/// The proven error in units of the fold's rounding unit times the sum of absolute values. It is
/// the sum of
/// - what the matrix instruction gives away,
/// - one unit a level of plain additions,
/// - two for the roundings of what goes into a compensated state and of what comes out.
double error_bound(const Graph& graph, const Plan& plan, const Target& target, std::size_t fold);
double allowed_error(const Graph& graph, const Target& target, Accuracy accuracy,
                     std::int64_t segment, std::size_t fold);

}  // namespace chainfold::codegen
