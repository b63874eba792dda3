#include "chainfold/runtime/launch/slots.hpp"

#include <algorithm>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/plan/parts.hpp"
#include "chainfold/runtime/launch/scan_arguments.hpp"

namespace chainfold::runtime {

namespace {

using codegen::BufferRole;
using codegen::Graph;
using codegen::ParamRole;

constexpr std::int64_t kScratchAlignment = 256;

}  // namespace

Slots::Slots(const Graph& graph, const codegen::Program& program, const Arguments& arguments,
             const Range& range)
    : program_(program) {
  std::size_t next = program.buffers.size();
  if (size() > slots_.size()) throw InternalError("a program has more slots than a launch holds");
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const auto index = static_cast<std::size_t>(program.buffers[i].index);
    const void* pointer = nullptr;
    if (program.buffers[i].role == BufferRole::input) pointer = arguments.inputs[index];
    if (program.buffers[i].role == BufferRole::output) pointer = arguments.outputs[index];
    slots_[i] = reinterpret_cast<std::uintptr_t>(pointer);
  }
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
      case ParamRole::rows: bits = static_cast<std::uint64_t>(range.rows); break;
      case ParamRole::stride: bits = static_cast<std::uint64_t>(arguments.strides[index]); break;
      case ParamRole::first_bit: bits = arguments.first_bits[index]; break;
      case ParamRole::literal: bits = graph.literals[index].bits; break;
      case ParamRole::user: bits = arguments.params[index]; break;
      case ParamRole::size:
        bits = static_cast<std::uint64_t>(
            param.size.evaluate(params().first(next - program.buffers.size())));
        break;
      case ParamRole::room: bits = static_cast<std::uint64_t>(arguments.rooms[index]); break;
      case ParamRole::has_carry_in:
      case ParamRole::has_carry_out:
      case ParamRole::has_status: break;  // set_carry, set_status
    }
    slots_[next++] = bits;
  }
  place_scratch();
}

void Slots::set_buffer(BufferRole role, int index, const void* pointer) {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    if (program_.buffers[i].role == role && program_.buffers[i].index == index) {
      slots_[i] = reinterpret_cast<std::uintptr_t>(pointer);
    }
  }
}

void Slots::set_carry(const void* in, const void* out) {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const codegen::Buffer& buffer = program_.buffers[i];
    const void* const base = buffer.role == BufferRole::carry_in    ? in
                             : buffer.role == BufferRole::carry_out ? out
                                                                    : nullptr;
    if (base != nullptr)
      slots_[i] = reinterpret_cast<std::uintptr_t>(base) +
                  static_cast<std::uintptr_t>(buffer.index * kCarryStep);
  }
  for (std::size_t i = 0; i < program_.params.size(); ++i) {
    std::uint64_t& slot = slots_[program_.buffers.size() + i];
    if (program_.params[i].role == ParamRole::has_carry_in) slot = in != nullptr ? 1 : 0;
    if (program_.params[i].role == ParamRole::has_carry_out) slot = out != nullptr ? 1 : 0;
  }
}

void Slots::set_status(void* status) {
  set_buffer(BufferRole::status, 0, status);
  for (std::size_t i = 0; i < program_.params.size(); ++i)
    if (program_.params[i].role == ParamRole::has_status)
      slots_[program_.buffers.size() + i] = status != nullptr ? 1 : 0;
}

void Slots::place_scratch() {
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    const codegen::Buffer& buffer = program_.buffers[i];
    if (buffer.role != BufferRole::scratch) continue;
    slots_[i] = static_cast<std::uint64_t>(scratch_bytes_);
    scratch_bytes_ += buffer.elements.evaluate(params()) * size_of(buffer.type);
    scratch_bytes_ =
        (scratch_bytes_ + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
}

void Slots::set_scratch(void* base) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    if (program_.buffers[i].role == BufferRole::scratch) slots_[i] += address - scratch_base_;
  }
  scratch_base_ = address;
}

std::int64_t Slots::grid(std::size_t launch) const {
  return program_.launches[launch].grid.evaluate(params());
}

Slots::Range range_of(const codegen::Plan& plan, const Arguments& arguments) {
  Slots::Range range{
      .segments = arguments.segments, .elements = arguments.elements, .rows = arguments.rows};
  const bool columns = plan.strategy == codegen::Strategy::columns;
  if (plan.strategy != codegen::Strategy::parts && !columns) return range;
  const std::int64_t length = columns                 ? arguments.rows
                              : arguments.segment > 0 ? arguments.segment
                                                      : arguments.elements;
  const std::int64_t cuts = columns ? 1 : arguments.segments;
  const codegen::PartCut cut = cut_parts(plan, length, cuts);
  range.parts = cut.parts;
  range.part_length = cut.part_length;
  range.part_end = cut.parts * cuts;
  return range;
}

}  // namespace chainfold::runtime
