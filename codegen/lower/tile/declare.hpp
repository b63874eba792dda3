// What programs declare of a graph and a plan: buffers, parameters, states.
#pragma once

#include <string>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {

/// Buffers and parameters that every strategy declares: inputs, outputs, literals, user parameters.
/// Outputs of scans may lie in the inputs' memory: their programs are in place.
void declare_graph(Program& program, const Graph& graph, const Plan& plan, const Target& target);
/// Where in its buffer an input has the value of an element (uniform i64): the one place that knows
/// of InputAccess.
ValueId place_in_input(Builder& b, const Graph& graph, std::size_t input, ValueId element);
int add_param(Program& program, std::string name, DType type, ParamRole role, int index = 0);
/// A parameter that the host computes from those before it, and the same as an expression.
int add_size(Program& program, std::string name, SizeExpr size);
SizeExpr param_size(const Program& program, int param);
/// Scratch arrays for the fields of every fold's state, `states` of each; their names begin with
/// `name`.
void declare_states(Program& program, const Graph& graph, const SizeExpr& states, int alignment,
                    const std::string& name = "state");
/// One more scratch array; returns its buffer.
int declare_scratch(Program& program, std::string name, DType type, const SizeExpr& elements,
                    int alignment = 1);

}  // namespace chainfold::codegen
