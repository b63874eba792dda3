#include "chainfold/runtime/arguments.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/error.hpp"

namespace chainfold::runtime {

namespace {

using codegen::BufferRole;
using codegen::Graph;
using codegen::Op;
using codegen::ParamRole;

constexpr std::int64_t kScratchAlignment = 256;

std::string known_names(const Graph& graph) {
  std::string names;
  for (const auto& input : graph.inputs) names += (names.empty() ? "" : ", ") + input.name;
  for (const auto& param : graph.params) names += (names.empty() ? "" : ", ") + param.name;
  return names.empty() ? "none" : names;
}

/// The value itself: a long double holds every integer of 64 bits.
long double value_of(DType type, std::uint64_t bits) {
  if (is_float(type) || type == DType::boolean) return codegen::double_of_bits(type, bits);
  const std::uint64_t wide =
      codegen::evaluate(Op::convert, type, is_signed(type) ? DType::i64 : DType::u64, bits);
  return is_signed(type) ? static_cast<long double>(static_cast<std::int64_t>(wide))
                         : static_cast<long double>(wide);
}

/// A scalar in the parameter's type, if that type holds its value exactly. Values are compared, not
/// bits converted there and back: conversions wrap and saturate.
std::uint64_t parameter_bits(const codegen::GraphParam& param, const Binding& binding) {
  const std::uint64_t bits =
      codegen::evaluate(Op::convert, binding.type(), param.type, binding.bits());
  const long double given = value_of(binding.type(), binding.bits()),
                    held = value_of(param.type, bits);
  if (given != held && !(std::isnan(given) && std::isnan(held))) {
    throw UserError(ErrorCode::type_mismatch,
                    fmt::format("parameter '{}' is {}, which cannot hold the bound {} value {}; "
                                "bind a value of {}, or declare "
                                "param<{}>(\"{}\")",
                                param.name, name_of(param.type), name_of(binding.type()),
                                codegen::text_of_bits(binding.type(), binding.bits()),
                                name_of(param.type), name_of(binding.type()), param.name),
                    param.name);
  }
  return bits;
}

const Binding* find(const Bindings& bindings, const std::string& name) {
  for (const Binding& binding : bindings) {
    if (binding.name() == name) return &binding;
  }
  return nullptr;
}

void check_names(const Graph& graph, const Bindings& bindings) {
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const std::string name(bindings[i].name());
    for (std::size_t j = 0; j < i; ++j) {
      if (bindings[j].name() == name) {
        throw UserError(ErrorCode::duplicate_input,
                        fmt::format("'{}' is bound twice; bind every name once", name), name);
      }
    }
    bool known = false;
    for (const auto& input : graph.inputs) known = known || input.name == name;
    for (const auto& param : graph.params) known = known || param.name == name;
    if (!known) {
      throw UserError(ErrorCode::unknown_input,
                      fmt::format("the expression has no input or parameter '{}'; it uses: {}",
                                  name, known_names(graph)),
                      name);
    }
  }
}

const std::byte* checked_input(const codegen::GraphInput& input, const Binding& binding,
                               std::int64_t elements) {
  const auto fail = [&](ErrorCode code, const std::string& message) {
    throw UserError(code, message, input.name);
  };
  if (binding.type() != input.type) {
    fail(ErrorCode::type_mismatch,
         fmt::format("input '{}' is declared as {} but bound to {} data; bind {} data or declare "
                     "input<{}>(\"{}\")",
                     input.name, name_of(input.type), name_of(binding.type()), name_of(input.type),
                     name_of(binding.type()), input.name));
  }
  if (binding.stride() != 1) {
    fail(ErrorCode::unsupported,
         fmt::format("input '{}' has stride {}; only contiguous data (stride 1) is supported yet",
                     input.name, binding.stride()));
  }
  if (elements > 0 && binding.data() == nullptr) {
    fail(ErrorCode::null_pointer,
         fmt::format("input '{}' is null; bind a pointer to {} elements of {}", input.name,
                     elements, name_of(input.type)));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(binding.data());
  if (address % static_cast<std::uintptr_t>(size_of(input.type)) != 0) {
    fail(ErrorCode::misaligned,
         fmt::format("input '{}' is not aligned to its element size of {} bytes", input.name,
                     size_of(input.type)));
  }
  return static_cast<const std::byte*>(binding.data());
}

}  // namespace

Arguments resolve(const Graph& graph, const Bindings& bindings, std::int64_t elements) {
  check_names(graph, bindings);
  Arguments args;
  const bool told = elements >= 0;
  const codegen::GraphInput* first = nullptr;
  for (const auto& input : graph.inputs) {
    const Binding* binding = find(bindings, input.name);
    if (!binding) {
      throw UserError(ErrorCode::missing_input,
                      fmt::format("input '{}' ({}) is not bound; bound names must cover: {}",
                                  input.name, name_of(input.type), known_names(graph)),
                      input.name);
    }
    if (binding->is_scalar()) {
      throw UserError(ErrorCode::type_mismatch,
                      fmt::format("'{}' is an input of {} elements; bind an array, not a number",
                                  input.name, name_of(input.type)),
                      input.name);
    }
    if (binding->count() < 0 && !told) {
      throw UserError(
          ErrorCode::invalid_argument,
          fmt::format("input '{}' has no length; bind a span, or a pointer with its count",
                      input.name),
          input.name);
    }
    if (binding->count() >= 0 && elements >= 0 &&
        (told ? binding->count() < elements : binding->count() != elements)) {
      throw UserError(ErrorCode::length_mismatch,
                      first ? fmt::format("input '{}' has {} elements but '{}' has {}; all inputs "
                                          "of one run have the same length",
                                          input.name, binding->count(), first->name, elements)
                            : fmt::format("input '{}' has {} elements, the launch asks for {}",
                                          input.name, binding->count(), elements),
                      input.name);
    }
    if (elements < 0) {
      elements = binding->count();
      first = &input;
    }
  }
  if (elements < 0) {
    throw UserError(ErrorCode::invalid_argument,
                    "the expression reads no input, so run() cannot know how many elements there "
                    "are; use launch()");
  }
  args.elements = elements;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    args.inputs[i] =
        checked_input(graph.inputs[i], *find(bindings, graph.inputs[i].name), elements);
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const Binding* binding = find(bindings, graph.params[i].name);
    if (!binding || !binding->is_scalar()) {
      throw UserError(
          binding ? ErrorCode::type_mismatch : ErrorCode::missing_input,
          fmt::format("parameter '{}' ({}) is not bound to a number; bind it by name like an "
                      "input: {{\"{}\", value}}",
                      graph.params[i].name, name_of(graph.params[i].type), graph.params[i].name),
          graph.params[i].name);
    }
    args.params[i] = parameter_bits(graph.params[i], *binding);
  }
  const codegen::Partition& partition = graph.partition;
  if (partition.kind == codegen::Partition::Kind::whole) {
    args.segments = 1;
    return args;
  }
  args.segment = partition.size;
  if (partition.size_param >= 0) {
    const auto& param = graph.params[static_cast<std::size_t>(partition.size_param)];
    args.segment = static_cast<std::int64_t>(
        codegen::evaluate(Op::convert, param.type, DType::i64,
                          args.params[static_cast<std::size_t>(partition.size_param)]));
    if (args.segment < 1) {
      throw UserError(ErrorCode::invalid_argument,
                      fmt::format("the segment size '{}' is {}; it must be at least 1", param.name,
                                  args.segment),
                      param.name);
    }
  }
  args.segments = elements / args.segment;
  args.tail_elements = elements % args.segment;
  if (args.tail_elements != 0 && !partition.tail) {
    throw UserError(
        ErrorCode::not_a_multiple,
        fmt::format("{} elements are no multiple of the segment size {} ({} segments and {} "
                    "elements over); pass a "
                    "multiple, or let the last segment be shorter with the partition's tail option",
                    elements, args.segment, args.segments, args.tail_elements),
        graph.inputs.empty() ? "" : graph.inputs[0].name);
  }
  return args;
}

void check_outputs(const Graph& graph, const Outputs& outputs, std::int64_t count) {
  if (outputs.size() != graph.outputs.size()) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("the expression has {} outputs, {} were given",
                                graph.outputs.size(), outputs.size()),
                    "outputs");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DType type = graph.node(graph.outputs[i]).type;
    const std::string name = fmt::format("output {}", i);
    if (outputs[i].type() != type) {
      throw UserError(
          ErrorCode::type_mismatch,
          fmt::format(
              "{} is {} but the array given holds {}; give {} or cast the output in the expression",
              name, name_of(type), name_of(outputs[i].type()), name_of(type)),
          name);
    }
    if (outputs[i].capacity() < count) {
      throw UserError(ErrorCode::too_small,
                      fmt::format("{} has room for {} values, {} are needed (one a segment)", name,
                                  outputs[i].capacity(), count),
                      name);
    }
    if (count > 0 && outputs[i].data() == nullptr) {
      throw UserError(ErrorCode::null_pointer,
                      fmt::format("{} is null; give room for {} values", name, count), name);
    }
    if (reinterpret_cast<std::uintptr_t>(outputs[i].data()) %
            static_cast<std::uintptr_t>(size_of(type)) !=
        0) {
      throw UserError(
          ErrorCode::misaligned,
          fmt::format("{} is not aligned to its element size of {} bytes", name, size_of(type)),
          name);
    }
  }
}

int common_alignment(const Graph& graph, const Arguments& arguments) {
  std::uintptr_t bits = 16;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    bits |= reinterpret_cast<std::uintptr_t>(arguments.inputs[i]);
  return 1 << std::countr_zero(bits);
}

Slots::Slots(const Graph& graph, const codegen::Program& program, const Arguments& arguments,
             const Range& range)
    : program_(program) {
  std::size_t next = program.buffers.size();
  if (size() > slots_.size()) throw InternalError("a program has more slots than a launch holds");
  for (const codegen::Param& param : program.params) {
    std::uint64_t bits = 0;
    const auto index = static_cast<std::size_t>(param.index);
    switch (param.role) {
      case ParamRole::segments: bits = static_cast<std::uint64_t>(range.segments); break;
      case ParamRole::elements: bits = static_cast<std::uint64_t>(range.elements); break;
      case ParamRole::origin: bits = static_cast<std::uint64_t>(range.origin); break;
      case ParamRole::part_begin: bits = static_cast<std::uint64_t>(range.part_begin); break;
      case ParamRole::part_end: bits = static_cast<std::uint64_t>(range.part_end); break;
      case ParamRole::parts: bits = static_cast<std::uint64_t>(range.parts); break;
      case ParamRole::part_length: bits = static_cast<std::uint64_t>(range.part_length); break;
      case ParamRole::literal: bits = graph.literals[index].bits; break;
      case ParamRole::user: bits = arguments.params[index]; break;
    }
    slots_[next++] = bits;
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    set_buffer(BufferRole::input, static_cast<int>(i), arguments.inputs[i]);
}

void Slots::set_buffer(BufferRole role, int index, const void* pointer) {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    if (program_.buffers[i].role == role && program_.buffers[i].index == index) {
      slots_[i] = reinterpret_cast<std::uintptr_t>(pointer);
    }
  }
}

std::int64_t Slots::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const codegen::Buffer& buffer : program_.buffers) {
    if (buffer.role != BufferRole::scratch) continue;
    bytes += buffer.elements.evaluate(params()) * size_of(buffer.type);
    bytes = (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  return bytes;
}

void Slots::set_scratch(void* base) {
  std::int64_t offset = 0;
  for (const codegen::Buffer& buffer : program_.buffers) {
    if (buffer.role != BufferRole::scratch) continue;
    set_buffer(BufferRole::scratch, buffer.index, static_cast<std::byte*>(base) + offset);
    offset += buffer.elements.evaluate(params()) * size_of(buffer.type);
    offset = (offset + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
}

std::int64_t Slots::grid(std::size_t launch) const {
  return program_.launches[launch].grid.evaluate(params());
}

Slots::Range range_of(const codegen::Plan& plan, const Arguments& arguments) {
  Slots::Range range{.segments = arguments.segments, .elements = arguments.elements};
  if (plan.strategy != codegen::Strategy::parts) return range;
  const std::int64_t length = arguments.segment > 0 ? arguments.segment : arguments.elements;
  const codegen::PartCut cut = cut_parts(plan, length, arguments.segments);
  range.parts = cut.parts;
  range.part_length = cut.part_length;
  range.part_end = cut.parts * arguments.segments;
  return range;
}

}  // namespace chainfold::runtime
