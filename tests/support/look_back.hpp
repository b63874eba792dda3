// A scan written by hand, the common test program of the whole input that lets blocks wait for each
// other: inclusive sums of i64 in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::test {

/// Tile t belongs to the block with ticket t and has `warps` * 32 elements. `fan` tiles in a row
/// are a group, `fan` groups a group of the next of `levels` levels; a group's last tile publishes
/// its fold. There may be fan^levels tiles.
struct LookBack {
  int warps = 1;
  int fan = 32;
  int levels = 3;
  bool in_place = false;  ///< y may be x
  int rounds = 1;         ///< tickets that each block takes
};

/// Buffers x and y (i64, `elements` each) and scratch sums (i64), flags (i32) and counter (i64);
/// one parameter, `elements`. The first launch sets flags and counter to zero, the second scans.
codegen::Program look_back_program(const LookBack& shape = {});

/// Memory for the program: x filled from a seed, scratch of the size that the program asks for.
struct LookBackMemory {
  LookBackMemory(const codegen::Program& program, std::int64_t elements, std::uint64_t seed = 1);
  /// Of the program in the interpreter; y is x where it may be.
  std::array<codegen::InterpBuffer, 5> buffers(const codegen::Program& program);
  /// The slots of a launch: buffers, then parameters.
  std::vector<std::uint64_t> arguments(const codegen::Program& program);
  [[nodiscard]] const std::vector<std::int64_t>& result(const codegen::Program& program) const {
    return program.in_place ? x : y;
  }

  std::vector<std::int64_t> x, y, sums;
  std::vector<std::int32_t> flags;
  std::vector<std::int64_t> counter;
  std::vector<std::uint64_t> params;
  std::vector<std::int64_t> expected;  ///< of y
};

}  // namespace chainfold::test
