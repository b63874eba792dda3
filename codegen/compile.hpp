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

/// The graph as `target` computes it: the same inputs, parameters, literals, outputs and values, by
/// operations that cost it less. What follows is given this graph.
Graph graph_for(const Graph& graph, const Target& target);

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
  std::string kernels;  ///< without the fixed helpers: what people read
  std::vector<std::string> symbols;
};
Source emit(const Program& program, const Target& target);

/// What stands behind a kernel, for people: the expression, the graph, the plan, which constant
/// matrices and why, bytes an element, the program and the source, which emit gave.
std::string explain_graph(const Graph& graph, const Target& target, const Compiled& compiled,
                          const Source& source);
/// The expression in infix form: "over(segments(64), sum(f32(x)) / 64)".
std::string print_expression(const Graph& graph);
/// Those of its outputs, as they were written.
std::vector<std::string> output_expressions(const Graph& graph);

}  // namespace chainfold::codegen
