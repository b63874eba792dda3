// What prefixes of sums may err.
#pragma once

#include <cstddef>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The proven error of every prefix of a sum, in units of the fold's rounding unit times the sum of
/// absolute values.
double scan_error_bound(const Graph& graph, const Plan& plan, const Target& target,
                        std::size_t fold);

}  // namespace chainfold::codegen
