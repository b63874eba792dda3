#include "chainfold/runtime/kernel.hpp"

#include <cstdlib>
#include <new>

#include <fmt/format.h>

#include "chainfold/codegen/error.hpp"
#include "chainfold/runtime/device_memory.hpp"
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/runtime/jit_nvrtc.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/scan_arguments.hpp"

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

/// Host memory that is not initialised first.
struct FreeDeleter {
  void operator()(void* pointer) const { std::free(pointer); }
};
using HostScratch = std::unique_ptr<void, FreeDeleter>;
HostScratch host_scratch(std::int64_t bytes) {
  if (bytes == 0) return {};
  HostScratch memory(std::aligned_alloc(256, static_cast<std::size_t>((bytes + 255) / 256 * 256)));
  if (!memory)
    throw DeviceError(ErrorCode::out_of_memory,
                      fmt::format("{} bytes of host scratch could not be allocated", bytes));
  return memory;
}

}  // namespace

Target target(std::string_view name) {
  if (name == "cpu") return codegen::cpu_target(runtime::cpu_plugin().threads);
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

Target runtime::default_target() {
  for (int device = 0; device < runtime::device_count(); ++device) {
    try {
      return gpu_of(device);
    } catch (const UserError&) {  // an architecture of before or after this version's time
    }
  }
  return target("cpu");
}

Kernel::State::Pieces Kernel::State::pieces(const runtime::Arguments& arguments, int alignment,
                                            bool in_place) {
  Pieces result;
  if (target.vector_bytes == 0) alignment = kWidestLoad;  // alignment makes no difference there
  auto add = [&](bool tail, const runtime::Arguments& args, int aligned) {
    Piece& piece = result.add();
    piece.graph = tail ? &*tail_graph : graph.get();
    piece.variant = &variant({.tail = tail,
                              .segment = args.segment,
                              .strided = args.strided && in_place,
                              .most_elements = codegen::most_elements_of(
                                  *piece.graph, target, args.segment, args.elements)},
                             aligned);
    piece.arguments = args;
    piece.range = runtime::range_of(piece.variant->compiled.plan, args);
  };
  if (arguments.segments > 0) add(false, arguments, alignment);
  if (arguments.tail_elements > 0) {
    runtime::Arguments tail = arguments;
    for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
      tail.inputs[i] += arguments.segments * arguments.strides[i] * size_of(graph->inputs[i].type);
      tail.strides[i] = 0;
    }
    for (std::size_t o = 0; o < graph->outputs.size(); ++o) {
      const std::int64_t before = runtime::per_element(*graph, o)
                                      ? arguments.segments * arguments.segment
                                      : arguments.segments;
      if (tail.outputs[o] != nullptr)
        tail.outputs[o] += before * size_of(graph->node(graph->outputs[o]).type);
    }
    tail.strided = false;
    tail.elements = arguments.tail_elements;
    tail.segment = 0;
    tail.segments = 1;
    tail.tail_elements = 0;
    // In place, the tail begins wherever the segments end; staging begins it anew.
    const bool anywhere = in_place && target.vector_bytes > 0;
    add(true, tail,
        anywhere ? std::min(alignment, runtime::common_alignment(*tail_graph, tail)) : alignment);
  }
  return result;
}

void Kernel::State::launch_piece(const Piece& piece, void* stream, void* scratch,
                                 const void* carry_in, void* carry_out) {
  runtime::Slots slots(*piece.graph, piece.variant->compiled.program, piece.arguments, piece.range);
  slots.set_scratch(scratch);
  slots.set_carry(carry_in, carry_out);
  piece.variant->launch_all(slots, stream);
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
                                  i, name_of(type), name_of(types[i]), name_of(type)),
                      fmt::format("output {}", i));
    }
  }
}

std::int64_t Kernel::output_count(const Bindings& bindings) const {
  return runtime::resolve(*state_->graph, bindings, -1).all_segments();
}

std::int64_t Kernel::output_count(const Bindings& bindings, std::size_t output) const {
  return output_counts(bindings).at(output);
}

std::vector<std::int64_t> Kernel::output_counts(const Bindings& bindings) const {
  const codegen::Graph& graph = *state_->graph;
  const runtime::Arguments arguments = runtime::resolve(graph, bindings, -1);
  std::vector<std::int64_t> counts;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o)
    counts.push_back(runtime::output_values(graph, arguments, o));
  return counts;
}

namespace {
std::int64_t scratch_of(const Kernel::State::Pieces& pieces) {
  std::int64_t bytes = 0;
  for (const auto& piece : pieces) {
    const runtime::Slots slots(*piece.graph, piece.variant->compiled.program, piece.arguments,
                               piece.range);
    bytes = std::max(bytes, slots.scratch_bytes());
  }
  return bytes;
}
}  // namespace

void Kernel::run_into(const Bindings& bindings, const Outputs& outputs) const {
  State& state = *state_;
  runtime::Arguments arguments = runtime::resolve(*state.graph, bindings, -1);
  runtime::bind_outputs(*state.graph, outputs, arguments);
  runtime::check_scan_strides(*state.graph, arguments);
  runtime::check_scan_memory(*state.graph, arguments);
  const auto pieces = state.pieces(arguments, kWidestLoad, state.device < 0);
  if (state.device >= 0) {
    runtime::run_staged(state, pieces);
    return;
  }
  const HostScratch scratch = host_scratch(scratch_of(pieces));
  for (const auto& piece : pieces) state.launch_piece(piece, nullptr, scratch.get());
}

namespace {

/// Pieces of a launch. Sizes may be asked for before there are any pointers.
Kernel::State::Pieces pieces_of(Kernel::State& state, const LaunchArgs& args, bool sizes_only) {
  if (args.elements < 0) {
    throw UserError(
        ErrorCode::invalid_argument,
        fmt::format("a launch of {} elements; the count must not be negative", args.elements.value),
        "elements");
  }
  const auto resolved = [&](const Bindings& bindings) {
    runtime::Arguments arguments = runtime::resolve(*state.graph, bindings, args.elements);
    runtime::check_scan_strides(*state.graph, arguments);
    if (sizes_only) {
      for (std::size_t o = 0; o < std::min(args.outputs.size(), state.graph->outputs.size()); ++o)
        arguments.outputs[o] = static_cast<std::byte*>(args.outputs[o].data());
    } else {
      runtime::bind_outputs(*state.graph, args.outputs, arguments);
      runtime::check_scan_memory(*state.graph, arguments);
      runtime::check_carry(*state.graph, args.carry_in, args.carry_out);
    }
    const int alignment = runtime::common_alignment(*state.graph, arguments);
    return state.pieces(arguments, alignment, true);
  };
  if (!sizes_only) return resolved(args.inputs);
  Bindings bindings = args.inputs;
  for (const auto& input : state.graph->inputs) {
    bool bound = false;
    for (const Binding& binding : args.inputs)
      bound = bound || (binding.name() == input.name && !binding.is_scalar());
    // Any aligned address will do: nothing is read.
    if (!bound)
      bindings.push_back(
          Binding(input.name, reinterpret_cast<const void*>(std::uintptr_t{256}), input.type));
  }
  return resolved(bindings);
}

/// Memory of a launch as messages name it, put together only where one is thrown.
struct MemoryName {
  std::string_view kind;  ///< "input", "output" or "scratch"
  std::string_view input{};
  std::size_t output = 0;

  [[nodiscard]] std::string what() const {
    return kind == "input" ? fmt::format("input '{}'", input) : where();
  }
  [[nodiscard]] std::string where() const {
    return kind == "input"    ? std::string(input)
           : kind == "output" ? fmt::format("output {}", output)
                              : std::string(kind);
  }
};

void check_device_memory(const runtime::Context& context, const void* pointer,
                         const MemoryName& name) {
  const runtime::PointerInfo info = runtime::pointer_info(context, pointer);
  if (info.kind == runtime::PointerInfo::Kind::device && info.device != context.device().ordinal) {
    throw UserError(
        ErrorCode::wrong_memory,
        fmt::format("{} lies on device {}, the kernel runs on device {}; copy it there, "
                    "or compile for target(\"gpu:{}\")",
                    name.what(), info.device, context.device().ordinal, info.device),
        name.where());
  }
  if (info.kind == runtime::PointerInfo::Kind::pageable) {
    throw UserError(ErrorCode::wrong_memory,
                    fmt::format("{} is ordinary host memory, which a GPU kernel cannot reach; pass "
                                "device memory to launch(), or "
                                "use run() for host data",
                                name.what()),
                    name.where());
  }
}

}  // namespace

void Kernel::launch(const LaunchArgs& args) const {
  State& state = *state_;
  const auto pieces = pieces_of(state, args, false);
  if ((args.carry_in.data != nullptr || args.carry_out.data != nullptr) && !pieces.empty())
    runtime::check_carries(pieces.begin()->variant->compiled.program);
  const std::int64_t needed = scratch_of(pieces);
  if (args.scratch.bytes < needed || (needed > 0 && !args.scratch.data)) {
    throw UserError(
        needed > 0 && !args.scratch.data ? ErrorCode::null_pointer : ErrorCode::too_small,
        fmt::format("the launch needs {} bytes of scratch, {} were given; ask scratch_bytes() with "
                    "the same arguments",
                    needed, args.scratch.data ? args.scratch.bytes.value : 0),
        "scratch");
  }
  if (needed > 0 && reinterpret_cast<std::uintptr_t>(args.scratch.data) % kWidestLoad != 0) {
    throw UserError(ErrorCode::misaligned,
                    "scratch is not aligned to 16 bytes; device allocations are aligned to 256",
                    "scratch");
  }
  if (state.device < 0) {
    for (const auto& piece : pieces)
      state.launch_piece(piece, nullptr, args.scratch.data, args.carry_in.data,
                         args.carry_out.data);
    return;
  }
  const runtime::Context& context = runtime::Context::of(state.device);
  const runtime::ContextScope scope(context);
  if (!pieces.empty()) {
    const runtime::Arguments& arguments = pieces.begin()->arguments;
    for (std::size_t i = 0; i < state.graph->inputs.size() && arguments.elements > 0; ++i) {
      check_device_memory(context, arguments.inputs[i],
                          {.kind = "input", .input = state.graph->inputs[i].name});
    }
    for (std::size_t i = 0; i < args.outputs.size(); ++i)
      check_device_memory(context, args.outputs[i].data(), {.kind = "output", .output = i});
    if (needed > 0) check_device_memory(context, args.scratch.data, {.kind = "scratch"});
    if (args.carry_in.data) check_device_memory(context, args.carry_in.data, {.kind = "carry_in"});
    if (args.carry_out.data)
      check_device_memory(context, args.carry_out.data, {.kind = "carry_out"});
  }
  for (const auto& piece : pieces)
    state.launch_piece(piece, args.stream, args.scratch.data, args.carry_in.data,
                       args.carry_out.data);
}

std::int64_t Kernel::scratch_bytes(const LaunchArgs& args) const {
  return scratch_of(pieces_of(*state_, args, true));
}
void Kernel::prepare(const LaunchArgs& args) const { pieces_of(*state_, args, true); }
std::int64_t Kernel::carry_bytes() const { return runtime::carry_bytes(*state_->graph); }

const Target& Kernel::target() const { return state_->target; }

std::string Kernel::device_name() const {
  if (state_->device >= 0) return runtime::device_info(state_->device).name;
  const chainfold_cpu_plugin& plugin = runtime::cpu_plugin();
  return fmt::format("CPU {}, {} threads, {}-bit vectors", plugin.host_cpu, plugin.threads,
                     plugin.vector_bits);
}

std::string Kernel::plan_summary() const {
  const std::lock_guard lock(state_->mutex);
  const auto* variant = state_->last.variant;
  return variant ? codegen::print(variant->compiled.plan, *state_->graph) : std::string();
}

std::string Kernel::plan() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last.variant ? to_text(state_->last.choice.plan) : std::string();
}

PlanFacts Kernel::plan_facts() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->last.variant) return {};
  const codegen::Plan& plan = state_->last.variant->compiled.plan;
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
  return state_->stats;
}

Kernel compile(const Computation& computation, const Options& options) {
  if (options.tuning_elements < 0) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("tuning with {} elements; it needs at least one, or 0 for as many "
                                "as a gibibyte holds",
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
  if (graph.inputs.size() + graph.params.size() > kMaxBindings ||
      graph.outputs.size() > kMaxBindings) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("the expression has {} inputs and parameters and {} outputs; a kernel takes at "
                    "most {} of each, so "
                    "split it over several kernels",
                    graph.inputs.size() + graph.params.size(), graph.outputs.size(), kMaxBindings));
  }
  runtime::check_scan_partition(graph);
  auto state = std::make_shared<Kernel::State>();
  state->graph = std::make_shared<const codegen::Graph>(graph);
  state->options = options;
  state->target = options.target ? *options.target : runtime::default_target();
  state->device = device_of(state->target);
  const codegen::Partition& partition = state->graph->partition;
  if (partition.tail) {
    state->tail_graph = *state->graph;
    state->tail_graph->partition = {};
  }
  if (partition.kind == codegen::Partition::Kind::whole || partition.size > 0) {
    state->variant({.segment = partition.size}, kWidestLoad);
  } else {
    // No size yet, but what no plan can meet is told now.
    static_cast<void>(codegen::choose_plan(*state->graph, state->target,
                                           state->request({.segment = 1}, kWidestLoad)));
  }
  return Kernel(std::move(state));
}

}  // namespace chainfold
