// From checked arguments to the words that a program's launches take. These are pointers, counts
// and scalars, in the order in which the program declares its buffers and parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/runtime/launch/arguments.hpp"

namespace chainfold::runtime {

/// Slots of a program's launches, filled by role.
class Slots {
 public:
  /// The most a launch takes: CUDA's limit of 4 KiB for a kernel's parameters.
  static constexpr std::size_t kMost = 512;
  /// Values that differ from launch to launch.
  struct Range {
    std::int64_t segments = 0, elements = 0, origin = 0, part_begin = 0, part_end = 0, parts = 1,
                 part_length = 0, rows = 0;
  };
  Slots(const codegen::Graph& graph, const codegen::Program& program, const Arguments& arguments,
        const Range& range);
  void set_buffer(codegen::BufferRole role, int index, const void* pointer);
  /// Where states of scans come from and go to (scan_arguments.hpp); null for none.
  void set_carry(const void* in, const void* out);
  /// Where the launch tells of its data; null: nowhere.
  void set_status(void* status);
  /// Cuts `base` into the program's scratch arrays.
  void set_scratch(void* base);
  /// Bytes that set_scratch needs.
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] std::int64_t grid(std::size_t launch) const;
  [[nodiscard]] const std::uint64_t* data() const { return slots_.data(); }
  [[nodiscard]] std::size_t size() const {
    return program_.buffers.size() + program_.params.size();
  }

 private:
  [[nodiscard]] std::span<const std::uint64_t> params() const {
    return std::span(slots_).subspan(program_.buffers.size(), program_.params.size());
  }
  void place_scratch();
  const codegen::Program& program_;
  std::int64_t scratch_bytes_ = 0;
  std::uintptr_t scratch_base_ = 0;         // from which the slots of scratch arrays count
  std::array<std::uint64_t, kMost> slots_;  // the first size() of them are set
};

/// The range of a launch over all segments of the arguments under a plan.
Slots::Range range_of(const codegen::Plan& plan, const Arguments& arguments);

}  // namespace chainfold::runtime
