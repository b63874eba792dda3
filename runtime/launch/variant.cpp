#include "chainfold/runtime/launch/variant.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/expression.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/diagnose.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"

namespace chainfold::runtime {

namespace {

std::string words(const codegen::Graph& graph, const codegen::PlanRequest& request) {
  const char* strides = request.strided ? " with strides" : "";
  const std::string memory =
      request.base_alignment < runtime::kWidestLoad
          ? fmt::format(" in memory aligned to {} bytes (16 are best)", request.base_alignment)
          : "";
  if (is_ragged(graph)) return "segments that data tell" + memory;
  if (request.is_whole()) return "the whole input" + memory;
  if (has_columns(graph)) return fmt::format("{} columns{}{}", request.segment, strides, memory);
  return fmt::format("segments of {}{}{}", request.segment, strides, memory);
}

}  // namespace

codegen::PlanChoice pinned_choice(const codegen::Graph& graph, const Target& target,
                                  const codegen::PlanRequest& request, const std::string& plan) {
  const codegen::PlanChoice pinned = codegen::parse_choice(plan);
  if (make_plan(graph, target, request, pinned)) return pinned;
  const std::string fault = codegen::diagnose(graph, target, request, pinned);
  throw UserError(ErrorCode::unsupported,
                  fmt::format("the pinned plan \"{}\" is not legal for {} on {}{}{}; {}; leave "
                              "Options::plan empty, or pin what Kernel::plan() tells for it",
                              plan, words(graph, request), target.name, fault.empty() ? "" : ": ",
                              fault, codegen::describe(pinned.strategy)),
                  "plan");
}

codegen::Compiled lower_choice(const codegen::Graph& graph, const Target& target,
                               const codegen::PlanRequest& request,
                               const codegen::PlanChoice& choice) {
  std::optional<codegen::Plan> plan = make_plan(graph, target, request, choice);
  if (!plan) {
    throw InternalError(
        fmt::format(
            "a choice is not legal for segments of {} (0: the whole) in memory aligned to {} bytes",
            request.segment, request.base_alignment),
        to_text(choice));
  }
  return compile_plan(graph, target, *std::move(plan));
}

KernelVariant load_lowered(const codegen::Graph& graph, const Target& target, int device,
                           codegen::Compiled lowered, const codegen::PlanChoice& choice,
                           Effort least) {
  KernelVariant variant;
  variant.compiled = std::move(lowered);
  const codegen::Program& program = variant.compiled.program;
  if (program.buffers.size() + program.params.size() > Slots::kMost) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("the expression takes {} arrays and numbers (inputs, outputs, fold states, "
                    "parameters and literals), "
                    "a kernel at most {}; split its outputs, or mark literals with cf::constant",
                    program.buffers.size() + program.params.size(), Slots::kMost));
  }
  variant.executable = load_executable(
      program, target, device, variant.reused,
      fmt::format("{} for {}, {}", print_expression(graph), target.name, to_text(choice)), least);
  return variant;
}

KernelVariant load_variant(const codegen::Graph& graph, const Target& target, int device,
                           const codegen::PlanRequest& request, const codegen::PlanChoice& choice,
                           Effort least) {
  return load_lowered(graph, target, device, lower_choice(graph, target, request, choice), choice,
                      least);
}

}  // namespace chainfold::runtime
