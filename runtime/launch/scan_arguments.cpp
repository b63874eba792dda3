#include "chainfold/runtime/launch/scan_arguments.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/graph/queries.hpp"

namespace chainfold::runtime {

namespace {

using codegen::Graph;
using codegen::NodeKind;
using codegen::Partition;

/// The bytes of an array.
struct Memory {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool overlaps(const Memory& other) const {
    return begin < other.end && other.begin < end;
  }
};
Memory memory_of(const void* data, std::int64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  return {begin, begin + static_cast<std::uintptr_t>(bytes)};
}

bool is_given(const Carry& carry) { return carry.data != nullptr || carry.bytes != 0; }

/// Whether some scan has this direction.
bool scans(const Graph& graph, bool reverse) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const codegen::Node& node) {
    return node.kind == NodeKind::scan && node.reverse == reverse;
  });
}

void check_one(const Carry& carry, const std::string& name, std::int64_t needed) {
  if (!is_given(carry)) return;
  if (carry.data == nullptr) {
    throw UserError(ErrorCode::null_pointer,
                    fmt::format("{} is null but has {} bytes; give memory for it, or neither", name,
                                carry.bytes.value),
                    name);
  }
  if (carry.bytes < needed) {
    throw UserError(ErrorCode::too_small,
                    fmt::format("{} has {} bytes, the states of this kernel take {}; ask "
                                "Kernel::carry_bytes()",
                                name, carry.bytes.value, needed),
                    name);
  }
  if (reinterpret_cast<std::uintptr_t>(carry.data) % kCarryStep != 0) {
    throw UserError(ErrorCode::misaligned, fmt::format("{} is not aligned to 16 bytes", name),
                    name);
  }
}

}  // namespace

std::int64_t carry_bytes(const Graph& graph) {
  if (graph.partition.kind != Partition::Kind::whole || !has_scans(graph)) return 0;
  std::int64_t fields = 0;
  for (const codegen::Fold& fold : graph.folds)
    fields += static_cast<std::int64_t>(fold.state.size());
  return fields * kCarryStep;
}

namespace {
/// Of segments that offsets tell, scans go one way, and elements read no folds.
void check_offset_scans(const Graph& graph) {
  const auto fail = [](const char* what, const char* instead) {
    throw UserError(
        ErrorCode::unsupported,
        fmt::format("{} over segments that offsets tell are not supported yet; {}", what, instead));
  };
  if (scans_both_ways(graph))
    fail("scans of both directions at once", "compute one, then the other");
  if (broadcasts(graph))
    fail("elements that read a fold of their segment",
         "compute the folds first, and the elements from them");
}
}  // namespace

void check_scan_partition(const Graph& graph) {
  if (is_ragged(graph) && has_scans(graph)) check_offset_scans(graph);
  if (graph.partition.kind != Partition::Kind::columns || !has_scans(graph)) return;
  throw UserError(ErrorCode::unsupported,
                  "scans along the columns of a matrix are not supported yet; transpose it and "
                  "scan its rows with segments(n)");
}

void check_scan_strides(const Graph& graph, const Arguments& arguments) {
  if (!arguments.strided || !has_scans(graph)) return;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (arguments.strides[i] == arguments.segment) continue;
    const std::string& name = graph.inputs[i].name;
    throw UserError(ErrorCode::unsupported,
                    fmt::format("input '{}' has a stride of {} for segments of {}; scans of inputs "
                                "with gaps are not supported yet: pass them without gaps",
                                name, arguments.strides[i], arguments.segment),
                    name);
  }
}

void check_scan_memory(const Graph& graph, const Arguments& arguments) {
  auto output = [&](std::size_t o) {
    return memory_of(arguments.outputs[o], output_values(graph, arguments, o) *
                                               size_of(graph.node(graph.outputs[o]).type));
  };
  // Offsets are read while outputs are written.
  const std::vector<codegen::GraphInput>& bounds = graph.partition.bounds;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const Memory theirs = memory_of(arguments.inputs[graph.inputs.size() + i],
                                      bound_values(graph, arguments) * size_of(bounds[i].type));
      if (!output(o).overlaps(theirs)) continue;
      const std::string name = fmt::format("output {}", o);
      throw UserError(ErrorCode::invalid_argument,
                      fmt::format("{} overlaps the offsets '{}'; give it memory of its own", name,
                                  bounds[i].name),
                      name);
    }
  }
  if (!has_scans(graph)) return;
  for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
    const Memory mine = output(o);
    const int size = size_of(graph.node(graph.outputs[o]).type);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const codegen::GraphInput& input = graph.inputs[i];
      const Memory theirs =
          memory_of(arguments.inputs[i], bytes_of_input(graph, arguments, i, arguments.elements));
      const bool same = mine.begin == theirs.begin && per_element(graph, o) && !input.is_packed();
      if (!mine.overlaps(theirs) || (same && size == size_of(input.type))) continue;
      const std::string name = fmt::format("output {}", o);
      throw UserError(
          ErrorCode::invalid_argument,
          same ? fmt::format("{} is the memory of input '{}', but its elements have {} bytes and "
                             "those of the input {}; scan in place with elements of one size, or "
                             "give the output memory of its own",
                             name, input.name, size, size_of(input.type))
               : fmt::format("{} overlaps input '{}'; an output with one value an element may be "
                             "exactly an input's memory, others need memory of their own",
                             name, input.name),
          name);
    }
    for (std::size_t other = 0; other < o; ++other) {
      if (!mine.overlaps(output(other))) continue;
      const std::string name = fmt::format("output {}", o);
      throw UserError(
          ErrorCode::invalid_argument,
          fmt::format("{} overlaps output {}; give each output memory of its own", name, other),
          name);
    }
  }
}

void check_carry(const Graph& graph, const Carry& in, const Carry& out) {
  if (!is_given(in) && !is_given(out)) return;
  const std::string name = is_given(in) ? "carry_in" : "carry_out";
  auto refuse = [&](const std::string& why) {
    throw UserError(ErrorCode::unsupported, fmt::format("{} is given, but {}", name, why), name);
  };
  if (!has_scans(graph)) refuse("the kernel has no scan that could go on; leave it out");
  if (graph.partition.kind != Partition::Kind::whole)
    refuse("only scans over whole() go on from launch to launch; leave it out");
  if (scans(graph, false) && scans(graph, true))
    refuse("the kernel scans forward and backward, which go on in opposite orders; split it");
  const std::int64_t needed = carry_bytes(graph);
  check_one(in, "carry_in", needed);
  check_one(out, "carry_out", needed);
  if (is_given(in) && is_given(out) &&
      memory_of(in.data, needed).overlaps(memory_of(out.data, needed))) {
    throw UserError(ErrorCode::invalid_argument,
                    "carry_out overlaps carry_in, which blocks may still read when it is written; "
                    "take two buffers in turn",
                    "carry_out");
  }
}

void check_carries(const codegen::Program& program) {
  auto has = [&](codegen::ParamRole role) {
    return std::any_of(program.params.begin(), program.params.end(),
                       [&](const codegen::Param& param) { return param.role == role; });
  };
  if (has(codegen::ParamRole::has_carry_in) && has(codegen::ParamRole::has_carry_out)) return;
  throw UserError(ErrorCode::unsupported,
                  fmt::format("the plan of this kernel ({}) cannot go on from launch to launch; "
                              "leave carry_in and carry_out out, or pin another plan",
                              program.name),
                  "carry");
}

}  // namespace chainfold::runtime
