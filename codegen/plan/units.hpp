// Which unit folds a tile: lanes, or a matrix instruction.
#pragma once

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// The sums that a matrix instruction can take: the input (or the two inputs) behind a fold's
/// operand.
struct MmaOperands {
  NodeId a = kNoNode, b = kNoNode;  ///< input nodes; b only for products
};
/// What of fold node `fold` a matrix instruction could take; a == kNoNode for nothing.
MmaOperands mma_operands(const Graph& graph, const Node& fold);
/// Whether a value comes from a type whose sums cannot overflow in f32.
bool is_short(const Graph& graph, NodeId id);
bool try_mma(const Graph& graph, const Plan& plan, const Target& target, const Node& node,
             FoldPlan& how);

}  // namespace chainfold::codegen
