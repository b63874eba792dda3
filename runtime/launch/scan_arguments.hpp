// What launches of scans must respect beyond arguments.hpp, and the memory of states that go on
// from launch to launch. Graphs without scans pass all checks.
#pragma once

#include <cstdint>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/runtime/launch/arguments.hpp"
#include "chainfold/runtime/launch/bindings.hpp"

namespace chainfold::runtime {

/// Bytes from field to field of a carried state: each lies on a boundary of its own.
inline constexpr int kCarryStep = 16;

/// Bytes of the states of all folds, field after field. Nothing can be carried, and they are 0,
/// without scans and where the partition is not the whole input.
std::int64_t carry_bytes(const codegen::Graph& graph);

/// Throws UserError(unsupported) for scans over a partition that they cannot run along.
void check_scan_partition(const codegen::Graph& graph);
/// Throws UserError(unsupported) where scans would read inputs with gaps between their rows.
void check_scan_strides(const codegen::Graph& graph, const Arguments& arguments);
/// An output may be an input's memory, element for element. Throws UserError(invalid_argument) for
/// any other memory that an output of a scanning graph shares with an input or another output.
void check_scan_memory(const codegen::Graph& graph, const Arguments& arguments);
/// Throws UserError where states are given that do not fit, or for a kernel that carries none.
void check_carry(const codegen::Graph& graph, const Carry& in, const Carry& out);
/// Throws UserError(unsupported) where the plan's program takes no states, so that none is ignored.
void check_carries(const codegen::Program& program);

}  // namespace chainfold::runtime
