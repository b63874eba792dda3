// What every strategy declares: buffers and parameters of the graph, scratch for states.
#include "chainfold/codegen/lower/tile/declare.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "chainfold/codegen/graph/fold.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/rows.hpp"

namespace chainfold::codegen {

int add_param(Program& program, std::string name, DType type, ParamRole role, int index) {
  program.params.push_back({std::move(name), type, role, index});
  return static_cast<int>(program.params.size()) - 1;
}
int add_size(Program& program, std::string name, SizeExpr size) {
  const int param = add_param(program, std::move(name), DType::i64, ParamRole::size);
  program.params.back().size = std::move(size);
  return param;
}
SizeExpr param_size(const Program& program, int param) {
  return SizeExpr::param(param, program.params[static_cast<std::size_t>(param)].name);
}

void declare_graph(Program& program, const Graph& graph, const Plan& plan, const Target& target) {
  program.in_place = has_scans(graph);
  program.accesses_anywhere = target.accesses_anywhere;
  const bool anywhere = target.accesses_anywhere || peels_memory(plan, graph);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphInput& input = graph.inputs[i];
    const bool aligned = !anywhere && !input.is_packed();
    const int wide = aligned ? std::min(16, plan.load_width * size_of(input.type)) : 1;
    program.buffers.push_back({"in_" + std::to_string(i), input.type, BufferRole::input,
                               static_cast<int>(i), std::max(wide, size_of(input.type)), 0,
                               input.is_packed()});
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Node& node = graph.node(graph.outputs[i]);
    const bool copied = plan.scan.blocked && node.level == Level::element;
    program.buffers.push_back({"out_" + std::to_string(i), node.type, BufferRole::output,
                               static_cast<int>(i), copied ? 16 : size_of(node.type), 0});
  }
  for (std::size_t i = 0; i < graph.literals.size(); ++i) {
    add_param(program, "literal_" + std::to_string(i), graph.literals[i].type, ParamRole::literal,
              static_cast<int>(i));
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    add_param(program, "user_" + std::to_string(i), graph.params[i].type, ParamRole::user,
              static_cast<int>(i));
  }
  for (std::size_t i = 0; plan.strided && i < graph.inputs.size(); ++i) {
    add_param(program, "stride_" + std::to_string(i), DType::i64, ParamRole::stride,
              static_cast<int>(i));
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!graph.inputs[i].is_packed()) continue;
    add_param(program, "first_bit_" + std::to_string(i), DType::i64, ParamRole::first_bit,
              static_cast<int>(i));
  }
}

ValueId place_in_input(Builder& b, const Graph& graph, std::size_t input, ValueId element) {
  if (!graph.inputs[input].is_packed()) return element;
  const std::vector<Param>& params = b.program().params;
  const auto first_bit = std::find_if(params.begin(), params.end(), [&](const Param& param) {
    return param.role == ParamRole::first_bit && param.index == static_cast<int>(input);
  });
  return b.add(element, b.param(static_cast<int>(first_bit - params.begin())));
}

int declare_scratch(Program& program, std::string name, DType type, const SizeExpr& elements,
                    int alignment) {
  const auto index =
      std::count_if(program.buffers.begin(), program.buffers.end(),
                    [](const Buffer& buffer) { return buffer.role == BufferRole::scratch; });
  program.buffers.push_back({std::move(name), type, BufferRole::scratch, static_cast<int>(index),
                             std::max(alignment, size_of(type)), elements});
  return static_cast<int>(program.buffers.size()) - 1;
}

void declare_states(Program& program, const Graph& graph, const SizeExpr& states, int alignment,
                    const std::string& name) {
  int field = 0;
  for (const Fold& fold : graph.folds) {
    for (const DType type : fold.state)
      declare_scratch(program, name + "_" + std::to_string(field++), type, states, alignment);
  }
}

}  // namespace chainfold::codegen
