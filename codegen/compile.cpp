#include "chainfold/codegen/compile.hpp"

#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/emit/cuda/cuda.hpp"
#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/verify.hpp"
#include "chainfold/codegen/lower/lower.hpp"
#include "chainfold/codegen/passes/dead.hpp"
#include "chainfold/codegen/passes/waits.hpp"
#include "chainfold/codegen/passes/zeros.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/verify.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::codegen {

void simplify(Program& program) {
  drop_zeros(program);
  eliminate_dead(program);
}

Compiled compile_plan(const Graph& graph, const Target& target, Plan plan) {
  verify(graph);
  verify(plan, graph, target);
  Compiled compiled{.plan = std::move(plan), .program = {}};
  compiled.program = lower(graph, compiled.plan, target);
  if (target.overlaps) place_waits(compiled.program);
#ifndef NDEBUG
  verify(compiled.program);  // tells a lowering's mistake from the pass's
#endif
  simplify(compiled.program);
  verify(compiled.program);
  return compiled;
}

Compiled compile_graph(const Graph& graph, const Target& target, const PlanRequest& request) {
  return compile_plan(graph, target, choose_plan(graph, target, request));
}

Source emit(const Program& program, const Target& target) {
  if (target.backend == Backend::cuda) {
    CudaSource source = emit_cuda(program, target.arch);
    return {std::move(source.text), std::move(source.kernels_text), std::move(source.kernels)};
  }
  LlvmSource source = emit_llvm(program);
  return {source.text, source.text, std::move(source.symbols)};
}

}  // namespace chainfold::codegen
