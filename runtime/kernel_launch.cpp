// What a kernel does at each call: checks the arguments, finds the pieces of work, launches them. A
// launch allocates nothing, and asks the driver about an address of device memory but once.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "chainfold/runtime/host_scans.hpp"
#include "chainfold/runtime/host_staging.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/bitmaps.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"

namespace chainfold {

namespace {

using runtime::kWidestLoad;

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

/// The launches of a call's pieces, in inline storage.
class Work {
 public:
  explicit Work(const Kernel::State::Pieces& pieces) : pieces_(pieces) {
    for (const auto& piece : pieces) {
      const runtime::Slots& slots = slots_.emplace(*piece.graph, piece.variant->compiled.program,
                                                   piece.arguments, piece.range);
      scratch_bytes_ = std::max(scratch_bytes_, slots.scratch_bytes());
    }
  }
  /// The most that a piece needs: pieces run one after the other.
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_bytes_; }
  void launch(void* stream, void* scratch, LaunchStatus* status, const void* carry_in = nullptr,
              void* carry_out = nullptr) {
    runtime::Slots* next = slots_.begin();
    for (const auto& piece : pieces_) {
      runtime::Slots& slots = *next++;
      slots.set_scratch(scratch);
      slots.set_carry(carry_in, carry_out);
      slots.set_status(status);
      piece.variant->launch_all(slots, stream);
    }
  }

 private:
  const Kernel::State::Pieces& pieces_;
  runtime::InlineItems<runtime::Slots, Kernel::State::kMostPieces> slots_;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace

void Kernel::State::add_pieces(const runtime::Arguments& arguments, int alignment, Way way,
                               Pieces& pieces) {
  const bool in_place = way != Way::staged;
  if (target.accesses_anywhere) alignment = kWidestLoad;
  auto add = [&](bool tail, const runtime::Arguments& args, int aligned) {
    const codegen::Graph& whole = tail ? *tail_graph : *graph;
    const bool strided = args.strided && in_place;
    // Segments from host memory wait so long for their copies that another plan for few is not
    // worth its compilation.
    const std::int64_t most =
        has_one_class(args.segment, strided) || (args.segment > 0 && !in_place)
            ? 0
            : codegen::size_class_of(whole, target, tail ? tail_classes : classes, args.segment,
                                     args.elements);
    Shape shape{.tail = tail, .segment = args.segment, .strided = strided, .size_limit = most};
    if (way == Way::launched) cover(shape, aligned, args.elements);
    const runtime::KernelVariant& compiled = variant(shape, aligned);
    if (way == Way::itself) {
      remember({.tail = tail,
                .segment = shape.segment,
                .strided = shape.strided,
                .elements = -1,
                .limits = {shape.size_limit},
                .alignments = {aligned}});
    }
    pieces.emplace(&compiled, &whole, runtime::range_of(compiled.compiled.plan, args), args);
  };
  // Where offsets tell the segments they are looked at even if there are none.
  if (arguments.segments > 0 || codegen::is_ragged(*graph)) add(false, arguments, alignment);
  if (arguments.tail_elements > 0) {
    runtime::Arguments tail = arguments;
    for (std::size_t i = 0; i < graph->inputs.size(); ++i) {
      runtime::advance_input(*graph, tail, i, arguments.segments * arguments.strides[i]);
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
    const bool anywhere = in_place && !target.accesses_anywhere;
    add(true, tail,
        anywhere ? std::min(alignment, runtime::common_alignment(*tail_graph, tail)) : alignment);
  }
}

std::int64_t Kernel::output_count(const CallBindings& bindings) const {
  const runtime::Arguments arguments = runtime::resolve(*state_->graph, bindings, -1);
  return codegen::has_heads(*state_->graph) ? arguments.elements : arguments.all_segments();
}

bool Kernel::is_counted(std::size_t output) const {
  return codegen::has_heads(*state_->graph) && !runtime::per_element(*state_->graph, output);
}

std::int64_t Kernel::output_count(const CallBindings& bindings, std::size_t output) const {
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

std::int64_t Kernel::run_into(const CallBindings& bindings, const Outputs& outputs) const {
  State& state = *state_;
  runtime::Arguments arguments = runtime::resolve(*state.graph, bindings, -1);
  runtime::bind_outputs(*state.graph, outputs, arguments);
  runtime::check_scan_strides(*state.graph, arguments);
  runtime::check_scan_memory(*state.graph, arguments);
  State::Pieces pieces;
  state.add_pieces(arguments, kWidestLoad,
                   state.device < 0 ? State::Way::launched : State::Way::staged, pieces);
  if (state.device >= 0) {
    const LaunchStatus status = runtime::run_staged(state, pieces);
    return codegen::has_heads(*state.graph) ? status.segments : arguments.all_segments();
  }
  Work work(pieces);
  const HostScratch scratch = host_scratch(work.scratch_bytes());
  LaunchStatus status;
  work.launch(nullptr, scratch.get(), &status);
  runtime::check_status(*state.graph, arguments, status);
  return codegen::has_heads(*state.graph) ? status.segments : arguments.all_segments();
}

namespace {

/// Refuses a negative number of elements.
void check_elements(const LaunchArgs& args) {
  if (args.elements >= 0) return;
  throw UserError(
      ErrorCode::invalid_argument,
      fmt::format("a launch of {} elements; the count must not be negative", args.elements.value),
      "elements");
}

/// Adds the pieces of a launch.
void add_pieces(Kernel::State& state, const LaunchArgs& args, Kernel::State::Pieces& pieces) {
  check_elements(args);
  runtime::Arguments arguments = runtime::resolve(*state.graph, args.inputs, args.elements);
  runtime::check_scan_strides(*state.graph, arguments);
  runtime::bind_outputs(*state.graph, args.outputs, arguments);
  runtime::check_scan_memory(*state.graph, arguments);
  runtime::check_carry(*state.graph, args.carry_in, args.carry_out);
  state.add_pieces(arguments, runtime::common_alignment(*state.graph, arguments),
                   Kernel::State::Way::launched, pieces);
}

/// Memory of a launch as messages name it, put together only where one is thrown.
struct MemoryName {
  std::string_view kind;  ///< "input", "output", or the name itself: "scratch", "carry_in"
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
  if (pointer == nullptr) return;  // of nothing: others are refused before
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (context.known_memory().has(address)) return;
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
  // Page-locked and managed memory may become ordinary memory at the same address.
  if (info.kind == runtime::PointerInfo::Kind::device) context.known_memory().add(address);
}

}  // namespace

void Kernel::launch(const LaunchArgs& args) const {
  State& state = *state_;
  State::Pieces pieces;
  add_pieces(state, args, pieces);
  if ((args.carry_in.data != nullptr || args.carry_out.data != nullptr) && !pieces.empty())
    runtime::check_carries(pieces.begin()->variant->compiled.program);
  Work work(pieces);
  const std::int64_t needed = work.scratch_bytes();
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
    work.launch(nullptr, args.scratch.data, args.status, args.carry_in.data, args.carry_out.data);
    return;
  }
  const runtime::Context& context = *state.context;
  const runtime::ContextScope scope(context);
  if (!pieces.empty()) {
    const runtime::Arguments& arguments = pieces.begin()->arguments;
    for (std::size_t i = 0; i < state.graph->inputs.size() && arguments.elements > 0; ++i) {
      check_device_memory(context, arguments.inputs[i],
                          {.kind = "input", .input = state.graph->inputs[i].name});
    }
    const auto& bounds = state.graph->partition.bounds;
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      check_device_memory(context, arguments.inputs[state.graph->inputs.size() + i],
                          {.kind = "input", .input = bounds[i].name});
    }
    if (args.status) check_device_memory(context, args.status, {.kind = "status"});
    for (std::size_t i = 0; i < args.outputs.size(); ++i)
      check_device_memory(context, args.outputs[i].data(), {.kind = "output", .output = i});
    if (needed > 0) check_device_memory(context, args.scratch.data, {.kind = "scratch"});
    if (args.carry_in.data) check_device_memory(context, args.carry_in.data, {.kind = "carry_in"});
    if (args.carry_out.data)
      check_device_memory(context, args.carry_out.data, {.kind = "carry_out"});
  }
  work.launch(args.stream, args.scratch.data, args.status, args.carry_in.data, args.carry_out.data);
}

void Kernel::State::add_pieces_of_sizes(const LaunchArgs& args, Way way, Pieces& pieces) {
  check_elements(args);
  Bindings bindings = runtime::with_any_memory(*graph, args.inputs);
  // How many segments there are changes the scratch, and no kernel.
  if (way == Way::itself) bindings = runtime::with_any_bounds(*graph, bindings);
  runtime::Arguments arguments = runtime::resolve(*graph, bindings, args.elements);
  runtime::check_scan_strides(*graph, arguments);
  for (std::size_t o = 0; o < std::min(args.outputs.size(), graph->outputs.size()); ++o)
    arguments.outputs[o] = static_cast<std::byte*>(args.outputs[o].data());
  add_pieces(arguments, runtime::common_alignment(*graph, arguments), way, pieces);
}

std::int64_t Kernel::scratch_bytes(const LaunchArgs& args) const {
  State::Pieces pieces;
  state_->add_pieces_of_sizes(args, State::Way::launched, pieces);
  return Work(pieces).scratch_bytes();
}
std::int64_t Kernel::carry_bytes() const { return runtime::carry_bytes(*state_->graph); }

}  // namespace chainfold
