#include "chainfold/runtime/launch/arguments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/runtime/launch/bitmaps.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"

namespace chainfold::runtime {

namespace {

using codegen::Graph;
using codegen::Op;

std::string known_names(const Graph& graph) {
  std::string names;
  for (const auto& input : graph.inputs) names += (names.empty() ? "" : ", ") + input.name;
  for (const auto& bound : graph.partition.bounds)
    names += (names.empty() ? "" : ", ") + bound.name;
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
                                "cf::param<{}>(\"{}\")",
                                param.name, cpp_name_of(param.type), cpp_name_of(binding.type()),
                                codegen::text_of_bits(binding.type(), binding.bits()),
                                cpp_name_of(param.type), cpp_name_of(binding.type()), param.name),
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
    const std::string_view name = bindings[i].name();
    for (std::size_t j = 0; j < i; ++j) {
      if (bindings[j].name() == name) {
        throw UserError(ErrorCode::duplicate_input,
                        fmt::format("'{}' is bound twice; bind every name once", name),
                        std::string(name));
      }
    }
    bool known = false;
    for (const auto& input : graph.inputs) known = known || input.name == name;
    for (const auto& bound : graph.partition.bounds) known = known || bound.name == name;
    for (const auto& param : graph.params) known = known || param.name == name;
    if (!known) {
      throw UserError(ErrorCode::unknown_input,
                      fmt::format("the expression has no input or parameter '{}'; it uses: {}",
                                  name, known_names(graph)),
                      std::string(name));
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
                     "cf::input<{}>(\"{}\")",
                     input.name, cpp_name_of(input.type), cpp_name_of(binding.type()),
                     cpp_name_of(input.type), cpp_name_of(binding.type()), input.name));
  }
  if (elements > 0 && binding.data() == nullptr) {
    fail(ErrorCode::null_pointer,
         fmt::format("input '{}' is null; bind a pointer to {} elements of {}", input.name,
                     elements, cpp_name_of(input.type)));
  }
  if (input.is_packed()) return checked_bitmap(input, binding, elements);
  const auto address = reinterpret_cast<std::uintptr_t>(binding.data());
  if (address % static_cast<std::uintptr_t>(size_of(input.type)) != 0) {
    fail(ErrorCode::misaligned,
         fmt::format("input '{}' is not aligned to its element size of {} bytes", input.name,
                     size_of(input.type)));
  }
  return static_cast<const std::byte*>(binding.data());
}

/// Elements from row to row of an input whose rows have `row` elements (0: the whole).
std::int64_t checked_stride(const codegen::GraphInput& input, const Binding& binding,
                            codegen::Partition::Kind kind, std::int64_t row) {
  const std::int64_t stride = binding.stride();
  const auto fail = [&](const std::string& why) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("input '{}' has a stride of {}, {}", input.name, stride, why),
                    input.name);
  };
  if (kind == codegen::Partition::Kind::offsets || kind == codegen::Partition::Kind::heads) {
    if (stride != 0)
      fail("but data tell the segments of one run of elements; bind without a stride");
    return 0;
  }
  if (kind == codegen::Partition::Kind::whole) {
    if (stride != 0) {
      fail(
          "but whole() is one run of elements without rows for it to lie between; fold rows with "
          "segments(n) or columns(n), or bind without a stride");
    }
    return 0;
  }
  if (stride == 0) return row;
  const bool columns = kind == codegen::Partition::Kind::columns;
  if (stride < row) {
    fail(
        fmt::format("less than the {} elements of {}; it counts the elements from the beginning "
                    "of one to that of the next, or is 0 where there is no gap",
                    row, columns ? "a row" : "a segment"));
  }
  return stride;
}

/// Elements of memory that `elements` elements in rows of `row`, `stride` apart, reach over. Throws
/// where these and a gap behind the last row are 2^63 bytes or more: kernels may compute where the
/// next row would begin.
std::int64_t checked_extent(const codegen::GraphInput& input, std::int64_t elements,
                            std::int64_t row, std::int64_t stride) {
  if (elements == 0) return 0;
  const bool dense = row == 0 || stride == row;
  const std::int64_t last = dense || elements % row == 0 ? row : elements % row;
  const std::int64_t rows = dense ? 1 : (elements - last) / row + 1;
  std::int64_t reach = dense ? elements : 0, bytes = 0;
  if ((!dense && __builtin_mul_overflow(rows, stride, &reach)) ||
      __builtin_mul_overflow(reach, std::int64_t{size_of(input.type)}, &bytes)) {
    throw UserError(
        ErrorCode::invalid_argument,
        dense ? fmt::format("input '{}' of {} elements of {} would reach over 2^63 bytes and more; "
                            "counts are of elements",
                            input.name, elements, cpp_name_of(input.type))
              : fmt::format("input '{}' would reach over {} rows with a stride of {}, beyond 2^63 "
                            "bytes; strides count elements",
                            input.name, rows, stride),
        input.name);
  }
  return dense ? elements : reach - stride + last;
}

/// The elements that memory of `count` elements holds in such rows. A last row may lack its gap.
std::int64_t elements_in(std::int64_t count, std::int64_t row, std::int64_t stride) {
  if (row == 0 || stride == row) return count;
  return count / stride * row + std::min(count % stride, row);
}

std::int64_t checked_row(const Graph& graph, const Arguments& args) {
  const codegen::Partition& partition = graph.partition;
  if (partition.size_param < 0) return partition.size;
  const auto& param = graph.params[static_cast<std::size_t>(partition.size_param)];
  const auto row = static_cast<std::int64_t>(
      codegen::evaluate(Op::convert, param.type, DType::i64,
                        args.params[static_cast<std::size_t>(partition.size_param)]));
  if (row < 1) {
    const bool columns = partition.kind == codegen::Partition::Kind::columns;
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("the {} '{}' is {}; it must be at least 1",
                                columns ? "number of columns" : "segment size", param.name, row),
                    param.name);
  }
  return row;
}

/// Offsets lie in memory as inputs do, and tell how many segments there are.
void resolve_bounds(const Graph& graph, const Bindings& bindings, Arguments& args) {
  const std::vector<codegen::GraphInput>& bounds = graph.partition.bounds;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const codegen::GraphInput& bound = bounds[i];
    const auto fail = [&](ErrorCode code, const std::string& message) {
      throw UserError(code, message, bound.name);
    };
    const Binding* binding = find(bindings, bound.name);
    if (binding == nullptr)
      fail(ErrorCode::missing_input,
           fmt::format("the offsets '{}' ({}) are not bound; bound names must cover: {}",
                       bound.name, cpp_name_of(bound.type), known_names(graph)));
    if (binding->is_scalar())
      fail(
          ErrorCode::type_mismatch,
          fmt::format("'{}' are the offsets of segments; bind an array, not a number", bound.name));
    if (binding->type() != bound.type)
      fail(
          ErrorCode::type_mismatch,
          fmt::format("the offsets '{}' are declared as {} but bound to {} data; bind {} data{}",
                      bound.name, cpp_name_of(bound.type), cpp_name_of(binding->type()),
                      cpp_name_of(bound.type),
                      binding->type() == DType::i32 || binding->type() == DType::i64
                          ? fmt::format(" or declare cf::offsets<{}>", cpp_name_of(binding->type()))
                          : ""));
    if (binding->stride() != 0)
      fail(ErrorCode::invalid_argument,
           fmt::format("the offsets '{}' have a stride; bind them one behind the other",
                       bound.name));
    if (binding->count() < 0)
      fail(ErrorCode::invalid_argument,
           fmt::format("the offsets '{}' have no length, which tells the number of segments; bind "
                       "a span, or a pointer with its count",
                       bound.name));
    if (bounds.size() == 1 && binding->count() < 1)
      fail(ErrorCode::length_mismatch,
           fmt::format("the offsets '{}' are empty; of m segments there are m + 1, and one of none",
                       bound.name));
    if (i > 0 && binding->count() != count)
      fail(ErrorCode::length_mismatch,
           fmt::format("there are {} ends '{}' but {} begins '{}'; each segment has one of both",
                       binding->count(), bound.name, count, bounds[0].name));
    count = binding->count();
    args.inputs[graph.inputs.size() + i] = checked_input(bound, *binding, count);
  }
  args.segments = bounds.size() == 1 ? count - 1 : count;
}

/// Counts of `elements` elements in rows of `segment`.
void set_shape(Arguments& args, const Graph& graph, std::int64_t elements, std::int64_t segment) {
  args.elements = elements;
  args.segment = segment;
  if (segment == 0) {
    args.segments = 1;
  } else if (graph.partition.kind == codegen::Partition::Kind::columns) {
    args.segments = segment;
    args.rows = elements / segment;
  } else {
    args.segments = elements / segment;
    args.tail_elements = elements % segment;
  }
}

}  // namespace

Arguments dense_arguments(const Graph& graph, std::int64_t elements, std::int64_t segment) {
  Arguments args;
  args.strides.fill(segment);
  set_shape(args, graph, elements, segment);
  return args;
}

Arguments resolve(const Graph& graph, const Bindings& bindings, std::int64_t elements) {
  check_names(graph, bindings);
  Arguments args;
  const bool told = elements >= 0;
  for (const auto& input : graph.inputs) {
    const Binding* binding = find(bindings, input.name);
    if (!binding) {
      throw UserError(ErrorCode::missing_input,
                      fmt::format("input '{}' ({}) is not bound; bound names must cover: {}",
                                  input.name, cpp_name_of(input.type), known_names(graph)),
                      input.name);
    }
    if (binding->is_scalar()) {
      throw UserError(ErrorCode::type_mismatch,
                      fmt::format("'{}' is an input of {} elements; bind an array, not a number",
                                  input.name, cpp_name_of(input.type)),
                      input.name);
    }
    check_bits(input, *binding);
    if (binding->count() < 0 && !told && !input.is_packed()) {
      throw UserError(
          ErrorCode::invalid_argument,
          fmt::format("input '{}' has no length; bind a span, or a pointer with its count",
                      input.name),
          input.name);
    }
  }
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    const Binding* binding = find(bindings, graph.params[i].name);
    if (!binding || !binding->is_scalar()) {
      throw UserError(
          binding ? ErrorCode::type_mismatch : ErrorCode::missing_input,
          fmt::format("parameter '{}' ({}) is not bound to a number; bind it by name like an "
                      "input: {{\"{}\", value}}",
                      graph.params[i].name, cpp_name_of(graph.params[i].type),
                      graph.params[i].name),
          graph.params[i].name);
    }
    args.params[i] = parameter_bits(graph.params[i], *binding);
  }
  const codegen::Partition& partition = graph.partition;
  const bool columns = partition.kind == codegen::Partition::Kind::columns;
  const std::int64_t row = checked_row(graph, args);

  const codegen::GraphInput* first = nullptr;
  // Whether bitmaps are all that tells how many elements there are.
  const bool alone = std::all_of(graph.inputs.begin(), graph.inputs.end(), [&](const auto& input) {
    return input.is_packed() && find(bindings, input.name)->count() < 0;
  });
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const codegen::GraphInput& input = graph.inputs[i];
    const Binding& binding = *find(bindings, input.name);
    const std::int64_t stride = checked_stride(input, binding, partition.kind, row);
    args.first_bits[i] = static_cast<std::uint8_t>(input.is_packed() ? binding.first_bit() % 8 : 0);
    args.strides[i] = stride;
    args.strided = args.strided || stride != row;
    const std::int64_t count =
        input.is_packed() ? elements_of_bits(input, binding, alone) : binding.count();
    const std::int64_t has = count < 0 ? count : elements_in(count, row, stride);
    const std::int64_t needed =
        checked_extent(input, told ? elements : std::max<std::int64_t>(has, 0), row, stride);
    if (has >= 0 && elements >= 0 && (told ? count < needed : has != elements)) {
      throw UserError(
          ErrorCode::length_mismatch,
          first ? fmt::format("input '{}' has {} elements but '{}' has {}; all inputs "
                              "of one run have the same length",
                              input.name, has, first->name, elements)
          : stride != row
              ? fmt::format("input '{}' has {} elements, the launch asks for {} in rows {} apart, "
                            "which reach over {}",
                            input.name, binding.count(), elements, stride, needed)
              : fmt::format("input '{}' has {} elements, the launch asks for {}", input.name,
                            binding.count(), elements),
          input.name);
    }
    if (elements < 0 && has >= 0) {
      elements = has;
      first = &input;
    }
  }
  if (elements < 0) {
    throw UserError(ErrorCode::invalid_argument,
                    graph.inputs.empty()
                        ? "the expression reads no input, so run() cannot know how many elements "
                          "there are; use launch()"
                        : "no bitmap says how many elements there are; bind cf::bits(bytes, count)",
                    graph.inputs.empty() ? "" : graph.inputs[0].name);
  }
  set_shape(args, graph, elements, row);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    args.inputs[i] =
        checked_input(graph.inputs[i], *find(bindings, graph.inputs[i].name), elements);
  }
  if (partition.kind == codegen::Partition::Kind::offsets) resolve_bounds(graph, bindings, args);
  if (columns && elements % row != 0) {
    throw UserError(ErrorCode::not_a_multiple,
                    fmt::format("{} elements are no multiple of the {} columns ({} rows and {} "
                                "elements over); pass whole rows",
                                elements, row, elements / row, elements % row),
                    graph.inputs.empty() ? "" : graph.inputs[0].name);
  }
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

Bindings with_any_memory(const Graph& graph, const Bindings& bindings) {
  Bindings all = bindings;
  for (const auto& input : graph.inputs) {
    const Binding* binding = find(bindings, input.name);
    const auto* const any = reinterpret_cast<const std::uint8_t*>(std::uintptr_t{256});
    if (binding == nullptr || binding->is_scalar())
      all.push_back(input.is_packed()
                        ? Binding(input.name, bits(any))
                        : Binding(input.name, static_cast<const void*>(any), input.type));
  }
  return all;
}

Bindings with_any_bounds(const Graph& graph, const Bindings& bindings) {
  Bindings all = bindings;
  const std::vector<codegen::GraphInput>& bounds = graph.partition.bounds;
  std::int64_t count = bounds.size() == 1 ? 1 : 0;
  for (const auto& bound : bounds)
    if (const Binding* binding = find(bindings, bound.name)) count = binding->count();
  for (const auto& bound : bounds)
    if (find(bindings, bound.name) == nullptr)
      all.push_back(Binding(bound.name, reinterpret_cast<const void*>(std::uintptr_t{256}),
                            bound.type, count));
  return all;
}

void check_status(const Graph& graph, const Arguments& arguments, const LaunchStatus& status) {
  for (std::size_t o = 0; o < graph.outputs.size() && has_heads(graph); ++o) {
    if (per_element(graph, o) || arguments.rooms[o] >= status.segments) continue;
    const std::string name = fmt::format("output {}", o);
    throw UserError(ErrorCode::too_small,
                    fmt::format("{} has room for {} values, {} are needed (one a segment)", name,
                                arguments.rooms[o], status.segments),
                    name);
  }
  if (status.wrong_offset < 0) return;
  const std::vector<codegen::GraphInput>& bounds = graph.partition.bounds;
  const std::int64_t place = status.wrong_offset;
  const auto value = [&](std::size_t bound, std::int64_t at) -> std::int64_t {
    const std::byte* const data = arguments.inputs[graph.inputs.size() + bound];
    if (bounds[bound].type == DType::i64) {
      std::int64_t wide = 0;
      std::memcpy(&wide, data + at * std::int64_t{sizeof wide}, sizeof wide);
      return wide;
    }
    std::int32_t narrow = 0;
    std::memcpy(&narrow, data + at * std::int64_t{sizeof narrow}, sizeof narrow);
    return narrow;
  };
  const std::string rule =
      fmt::format("offsets are not negative, do not decrease, and end within the {} elements",
                  arguments.elements);
  if (bounds.size() == 1) {
    const std::int64_t offset = value(0, place);
    throw UserError(ErrorCode::wrong_offset,
                    place > 0
                        ? fmt::format("offset {} of '{}' is {}, the one before it {}; {}", place,
                                      bounds[0].name, offset, value(0, place - 1), rule)
                        : fmt::format("offset 0 of '{}' is {}; {}", bounds[0].name, offset, rule),
                    bounds[0].name);
  }
  throw UserError(
      ErrorCode::wrong_offset,
      fmt::format("segment {} of '{}' and '{}' is [{}, {}){}; {}, and each segment ends before or "
                  "where the next one begins",
                  place, bounds[0].name, bounds[1].name, value(0, place), value(1, place),
                  place + 1 < arguments.segments
                      ? fmt::format(", the next one begins at {}", value(0, place + 1))
                      : "",
                  rule),
      bounds[0].name);
}

void bind_outputs(const Graph& graph, const Outputs& outputs, Arguments& arguments) {
  if (outputs.size() != graph.outputs.size()) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("the expression has {} outputs, {} were given",
                                graph.outputs.size(), outputs.size()),
                    "outputs");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DType type = graph.node(graph.outputs[i]).type;
    const std::int64_t count = output_values(graph, arguments, i);
    const auto fail = [&](ErrorCode code, const std::string& why) {
      const std::string name = fmt::format("output {}", i);
      throw UserError(code, name + why, name);
    };
    const bool bytes = type == DType::boolean && outputs[i].type() == DType::u8;
    if (outputs[i].type() != type && !bytes) {
      fail(ErrorCode::type_mismatch,
           fmt::format(
               " is {} but the array given holds {}; give {} or cast the output in the expression",
               cpp_name_of(type), cpp_name_of(outputs[i].type()), cpp_name_of(type)));
    }
    arguments.rooms[i] = outputs[i].capacity();
    const bool counted = has_heads(graph) && !per_element(graph, i);
    if (counted && outputs[i].capacity() < 0)
      fail(ErrorCode::invalid_argument,
           fmt::format(" has room for {} values; give 0 or more", outputs[i].capacity()));
    if (counted && outputs[i].capacity() > 0 && outputs[i].data() == nullptr)
      fail(ErrorCode::null_pointer,
           fmt::format(" is null; give room for {} values", outputs[i].capacity()));
    if (!counted && outputs[i].capacity() < count) {
      fail(ErrorCode::too_small,
           fmt::format(" has room for {} values, {} are needed (one {})", outputs[i].capacity(),
                       count, per_element(graph, i) ? "an element" : "a segment"));
    }
    if (!counted && count > 0 && outputs[i].data() == nullptr)
      fail(ErrorCode::null_pointer, fmt::format(" is null; give room for {} values", count));
    if (reinterpret_cast<std::uintptr_t>(outputs[i].data()) %
            static_cast<std::uintptr_t>(size_of(type)) !=
        0) {
      fail(ErrorCode::misaligned,
           fmt::format(" is not aligned to its element size of {} bytes", size_of(type)));
    }
    arguments.outputs[i] = static_cast<std::byte*>(outputs[i].data());
  }
  arguments.bound = true;
}

int common_alignment(const Graph& graph, const Arguments& arguments) {
  std::uintptr_t bits = 16;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i].is_packed()) continue;
    bits |= reinterpret_cast<std::uintptr_t>(arguments.inputs[i]);
    if (arguments.strided) {
      bits |= static_cast<std::uintptr_t>(arguments.strides[i]) *
              static_cast<std::uintptr_t>(size_of(graph.inputs[i].type));
    }
  }
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    if (per_element(graph, o)) bits |= reinterpret_cast<std::uintptr_t>(arguments.outputs[o]);
  }
  return 1 << std::countr_zero(bits);
}

}  // namespace chainfold::runtime
