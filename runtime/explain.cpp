#include "chainfold/runtime/explain.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/explain.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"

namespace chainfold {

namespace {

using codegen::PlanChoice;
using Source = Kernel::State::Source;

std::string resources_of(const codegen::Source& source, const Target& target) {
  if (target.backend != codegen::Backend::cuda) return {};
  if (!runtime::nvrtc_available()) return "registers\n  unknown: NVRTC was not found\n\n";
  const runtime::Cubin cubin =
      runtime::compile_cubin(source.text, {.arch = target.arch, .resource_report = true});
  std::string text = "registers\n";
  for (const auto& kernel : cubin.resources) {
    text += fmt::format(
        "  {}: {} registers a thread, {} bytes of shared memory a block, {} bytes spilled\n",
        kernel.name, kernel.registers, kernel.shared, kernel.spill_store + kernel.spill_load);
  }
  return text + "\n";
}

std::string explanation(const codegen::Graph& graph, const Target& target, const PlanChoice& choice,
                        const std::string& why, const codegen::Compiled& compiled) {
  const codegen::Source source = codegen::emit(compiled.program, target);
  return fmt::format("choice\n  {}\n  {}\n\n", to_text(choice), why) +
         resources_of(source, target) + codegen::explain_graph(graph, target, compiled, source);
}

/// The choice that is known without compiling: pinned, or by rules.
std::string explain_choice(const codegen::Graph& graph, const Target& target,
                           const codegen::PlanRequest& request, const std::string& pinned) {
  const PlanChoice choice = pinned.empty() ? default_choice(graph, target, request)
                                           : runtime::pinned_choice(graph, target, request, pinned);
  return explanation(graph, target, choice, pinned.empty() ? "by rules" : "pinned",
                     runtime::lower_choice(graph, target, request, choice));
}

std::int64_t checked_size(const codegen::Partition& partition, std::int64_t segment) {
  if (partition.size_param < 0) return partition.size;
  if (segment < 1) {
    const bool columns = partition.kind == codegen::Partition::Kind::columns;
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("a {} of {}; it must be at least 1",
                                columns ? "number of columns" : "segment size", segment),
                    "segment");
  }
  return segment;
}

std::string why(const Kernel::State::Choice& choice) {
  if (choice.source == Source::pinned) return "pinned";
  if (choice.source == Source::rules || !choice.tuning) return "by rules";
  const TuningResult& found = *choice.tuning;
  return fmt::format("tuned on {}, {}: {:.4g} ms, the default {:.4g} ms, for {} elements",
                     found.device, found.date, found.ms, found.default_ms, found.elements);
}

}  // namespace

std::string explain(const Computation& computation, const Target& target, std::int64_t segment) {
  Options options;
  options.target = target;
  return explain(computation, options, segment);
}

std::string explain(const Computation& computation, const Options& options, std::int64_t segment) {
  return runtime::roomy([&] {
    const Target target = options.target ? *options.target : runtime::default_target();
    runtime::check_scan_partition(computation.graph());
    const codegen::Graph graph = codegen::legalize(computation.graph(), target);
    return explain_choice(graph, target,
                          {.accuracy = options.accuracy,
                           .nonfinite = options.nonfinite,
                           .determinism = options.determinism,
                           .segment = checked_size(graph.partition, segment)},
                          options.plan);
  });
}

std::string Kernel::explain() const {
  constexpr std::int64_t kExample = 256;
  const codegen::Graph& graph = *state_->graph;
  State::Last last;
  {
    const std::lock_guard lock(state_->mutex);
    last = state_->last;
  }
  return runtime::roomy([&] {
    if (last.variant) {
      return explanation(graph, state_->target, last.choice.plan, why(last.choice),
                         last.variant->compiled);
    }
    if (last.plan) {
      return explanation(graph, state_->target, last.choice.plan, why(last.choice),
                         codegen::compile_plan(graph, state_->target, *last.plan));
    }
    const std::int64_t segment = graph.partition.size_param >= 0 ? kExample : graph.partition.size;
    return explain_choice(graph, state_->target,
                          state_->request({.segment = segment}, runtime::kWidestLoad),
                          state_->options.plan);
  });
}

}  // namespace chainfold
