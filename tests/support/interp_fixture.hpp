// What tests of the interpreter run their programs on: three arrays, and all schedules.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::test {

inline constexpr std::int64_t kInterpElements = 1024;

/// A program over one input x, one output y and scratch tmp, all i64, without a launch.
inline codegen::Program three_arrays() {
  codegen::Program program;
  program.name = "test";
  program.buffers = {
      {"x", DType::i64, codegen::BufferRole::input, 0, 16, {}},
      {"y", DType::i64, codegen::BufferRole::output, 0, 16, {}},
      {"tmp", DType::i64, codegen::BufferRole::scratch, 0, 16, codegen::SizeExpr(kInterpElements)}};
  return program;
}

/// Their memory: x counts from 1, the others are zero.
struct InterpArrays {
  using Array = std::array<std::int64_t, kInterpElements>;
  alignas(16) Array x{};
  alignas(16) Array y{};
  alignas(16) Array tmp{};
  InterpArrays() { std::iota(x.begin(), x.end(), std::int64_t{1}); }
  std::array<codegen::InterpBuffer, 3> buffers() {
    return {codegen::InterpBuffer{x.data(), kInterpElements},
            codegen::InterpBuffer{y.data(), kInterpElements},
            codegen::InterpBuffer{tmp.data(), kInterpElements}};
  }
};

/// In order, reversed and at random, with one resident block and with three.
inline std::vector<codegen::InterpOptions> all_schedules() {
  constexpr std::uint64_t kSeeds = 6;
  std::vector<codegen::InterpOptions> all;
  for (const int resident : {1, 3}) {
    all.push_back({.schedule = codegen::Schedule::in_order, .resident_blocks = resident});
    all.push_back({.schedule = codegen::Schedule::reversed, .resident_blocks = resident});
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
      all.push_back(
          {.schedule = codegen::Schedule::random, .seed = seed, .resident_blocks = resident});
  }
  return all;
}

/// Every schedule finds an error whose message has `part` in it.
inline void expect_interp_error(const codegen::Program& program, const std::string& part) {
  for (const codegen::InterpOptions& options : all_schedules()) {
    InterpArrays memory;
    try {
      interpret(program, memory.buffers(), {}, options);
      ADD_FAILURE() << "no error in:\n" << print(program);
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

}  // namespace chainfold::test
