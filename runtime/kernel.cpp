#include "chainfold/runtime/kernel.hpp"

#include <cstdlib>
#include <new>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/bound.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/codegen/plan/strategies.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/device/context.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"
#include "chainfold/runtime/jit/llvm.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"

namespace chainfold {

namespace {

using runtime::kWidestLoad;

Target gpu_of(int device) {
  const runtime::DeviceInfo& info = runtime::device_info(device);
  Target target = codegen::gpu_target(info.arch(), info.sms);
  target.resident_warps = info.max_threads_per_sm / codegen::kWarpWidth;
  target.name = device == 0 ? "gpu" : fmt::format("gpu:{}", device);
  return target;
}

/// The device that a target names: its ordinal, or -1 for the CPU.
int device_of(const Target& target) {
  if (target.backend == codegen::Backend::llvm) return -1;
  if (target.name == "gpu") return 0;
  if (target.name.rfind("gpu:", 0) == 0) return std::atoi(target.name.c_str() + 4);
  for (int device = 0; device < runtime::device_count(); ++device) {
    if (runtime::device_info(device).arch() == target.arch) return device;
  }
  throw DeviceError(
      ErrorCode::device_failed,
      fmt::format(
          "no device of this machine has the architecture {}; compile for target(\"gpu\") or "
          "target(\"cpu\"), or use explain() to look at its kernels",
          target.name),
      "target");
}

/// target() on this thread.
Target target_here(std::string_view name) {
  if (name == "cpu") {
    const chainfold_cpu_plugin& plugin = runtime::cpu_plugin();
    return codegen::cpu_target(plugin.threads, plugin.host_cpu, plugin.vector_bits);
  }
  if (name == "gpu") return gpu_of(0);
  if (name.substr(0, 4) == "gpu:") {
    const std::string ordinal(name.substr(4));
    char* end = nullptr;
    const long device = std::strtol(ordinal.c_str(), &end, 10);
    if (!ordinal.empty() && *end == '\0') {
      if (device >= 0 && device < runtime::device_count()) return gpu_of(static_cast<int>(device));
      throw DeviceError(
          ErrorCode::device_failed,
          fmt::format("there is no device {}: this machine has {}", name, runtime::device_count()),
          "target");
    }
  }
  return codegen::parse_target(name);
}

}  // namespace

Target target(std::string_view name) {
  return runtime::roomy([&] { return target_here(name); });
}

Target runtime::default_target() {
  return roomy([] {
    for (int device = 0; device < device_count(); ++device) {
      try {
        return gpu_of(device);
      } catch (const UserError&) {  // an architecture of before or after this version's time
      }
    }
    return target_here("cpu");
  });
}

void Kernel::check_output_types(const DType* types, std::size_t count) const {
  const codegen::Graph& graph = *state_->graph;
  if (count != graph.outputs.size()) {
    throw UserError(ErrorCode::type_mismatch,
                    fmt::format("run<...> names {} output types, the expression has {} outputs",
                                count, graph.outputs.size()),
                    "outputs");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const DType type = graph.node(graph.outputs[i]).type;
    if (types[i] != type) {
      throw UserError(ErrorCode::type_mismatch,
                      fmt::format("output {} is {}, but run<...> asks for {}; ask for {} or cast "
                                  "the output in the expression",
                                  i, cpp_name_of(type), cpp_name_of(types[i]), cpp_name_of(type)),
                      fmt::format("output {}", i));
    }
  }
}

void Kernel::refuse_output(std::size_t i, std::int64_t count, std::size_t bytes) {
  const std::string name = fmt::format("output {}", i);
  throw DeviceError(
      ErrorCode::out_of_memory,
      fmt::format("there is no memory for {}, {} values of {} bytes each ({:.3g} "
                  "bytes); run fewer elements at a time, or give memory of your own "
                  "to run_into",
                  name, count, bytes, static_cast<double>(count) * static_cast<double>(bytes)),
      name);
}

const Target& Kernel::target() const { return state_->target; }

std::string Kernel::device_name() const {
  if (state_->device >= 0) return runtime::device_info(state_->device).name;
  return runtime::cpu_text(runtime::cpu_plugin());
}

std::string Kernel::plan_summary() const {
  const std::lock_guard lock(state_->mutex);
  const std::optional<codegen::Plan>& plan = state_->last.plan;
  return plan ? codegen::print(*plan, *state_->graph) : std::string();
}

std::string Kernel::plan() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last.plan ? to_text(state_->last.choice.plan) : std::string();
}

PlanFacts Kernel::plan_facts() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->last.plan) return {};
  const codegen::Plan& plan = *state_->last.plan;
  PlanFacts facts{.plan = to_text(state_->last.choice.plan),
                  .strategy = std::string(codegen::name_of(plan.strategy)),
                  .launches = plan.launches};
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    (plan.folds[f].unit == codegen::Unit::simt ? facts.lanes : facts.tensor_cores) = true;
    const std::optional<double> bound = codegen::proven_bound(plan, *state_->graph, f);
    facts.bounded = facts.bounded && bound.has_value();
    facts.error_bound_u = std::max(facts.error_bound_u, bound.value_or(0));
  }
  return facts;
}

std::optional<TuningResult> Kernel::tuning() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last.choice.tuning;
}

KernelStats Kernel::stats() const {
  const std::lock_guard lock(state_->mutex);
  KernelStats stats = state_->stats;
  for (const auto& [key, slot] : state_->variants) {
    const runtime::Executable* const code = slot->variant.executable.get();
    if (code == nullptr) continue;  // being compiled, or refused
    if (code->optimised()) ++stats.optimised;
    if (!slot->variant.reused) stats.optimise_ms += code->optimise_ms();
  }
  return stats;
}

namespace {

/// All of a state that is known before a variant is asked for.
void prepare_state(Kernel::State& state, const codegen::Graph& graph) {
  state.target = state.options.target ? *state.options.target : runtime::default_target();
  state.graph = std::make_shared<const codegen::Graph>(codegen::legalize(graph, state.target));
  state.device = device_of(state.target);
  if (state.device >= 0) state.context = &runtime::Context::of(state.device);
  state.classes = codegen::element_classes(*state.graph, state.target);
  const codegen::Partition& partition = state.graph->partition;
  if (partition.tail) {
    state.tail_graph = *state.graph;
    state.tail_graph->partition = {};
    state.tail_classes = codegen::element_classes(*state.tail_graph, state.target);
  }
  if (partition.has_size() && partition.size == 0) {
    // No size yet, but a request that no plan can meet throws now.
    static_cast<void>(codegen::choose_plan(*state.graph, state.target,
                                           state.request({.segment = 1}, kWidestLoad)));
  }
}

}  // namespace

Kernel compile(const Computation& computation, const Options& options) {
  if (options.tuning_elements < 0) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("tuning with {} elements; it needs at least one, or 0 for as many "
                                "as two gibibytes hold",
                                options.tuning_elements),
                    "tuning_elements");
  }
  if (!(options.tuning_seconds >= 0)) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("tuning for {} seconds; give a number of them, or 0 for as long as "
                                "all plans take",
                                options.tuning_seconds),
                    "tuning_seconds");
  }
  if (!options.plan.empty()) static_cast<void>(codegen::parse_choice(options.plan));
  const codegen::Graph& graph = computation.graph();
  const std::size_t inputs = graph.inputs.size() + graph.partition.bounds.size();
  if (inputs + graph.params.size() > kMaxBindings || graph.outputs.size() > kMaxBindings) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("the expression has {} inputs and parameters and {} outputs; a kernel takes at "
                    "most {} of each, so "
                    "split it over several kernels",
                    inputs + graph.params.size(), graph.outputs.size(), kMaxBindings));
  }
  runtime::check_scan_partition(graph);
  auto state = std::make_shared<Kernel::State>();
  state->options = options;
  runtime::roomy([&] { prepare_state(*state, graph); });
  const codegen::Partition& partition = state->graph->partition;
  const bool whole = !partition.has_size();
  if (whole || partition.size > 0) {
    const Kernel::State::Shape shape{.segment = whole ? 0 : partition.size};
    // The number of elements decides between size classes. A pinned plan of segments is the same
    // for any number.
    const bool one_code =
        (!whole && !options.plan.empty()) ||
        !codegen::has_few_class(*state->graph, state->target, state->classes, shape.segment);
    if (one_code)
      state->variant(shape, kWidestLoad);
    else
      state->foresee(shape);
  }
  return Kernel(std::move(state));
}

}  // namespace chainfold
