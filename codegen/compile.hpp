// From a graph to the text of a kernel: the ordered list of passes. Start reading the compiler
// here.
#pragma once

#include <string>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// A program with the plan that it realises.
struct Compiled {
  Plan plan;
  Program program;
};
/// Chooses a plan, lowers, cleans and verifies. Pure: equal arguments give equal results. Takes
/// about a millisecond. Throws UserError(unsupported) for what no plan can meet.
Compiled compile_graph(const Graph& graph, const Target& target, const PlanRequest& request);
/// The same for a plan that is given. Throws InternalError for one that is not legal.
Compiled compile_plan(const Graph& graph, const Target& target, Plan plan);
/// What every lowered program goes through: the passes that change nothing of what it means, on any
/// target (lower/lower.hpp).
void simplify(Program& program);
/// Source text in the language of the target's backend, and the symbols of its launches in order.
struct Source {
  std::string text;     ///< all that the compiler gets
  std::string kernels;  ///< without the fixed helpers, for readers
  std::vector<std::string> symbols;
};
Source emit(const Program& program, const Target& target);

}  // namespace chainfold::codegen
