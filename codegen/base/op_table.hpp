// The rows of op_table.inc as data.
#pragma once

#include <string_view>

#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::codegen {

/// Types that an operation is defined on: integers and f32, f64; floats f32 and f64; integers and
/// boolean; integers; all but f16 and bf16; all but boolean; all.
enum class OpDomain : std::uint8_t { numbers, floats, bits, integers, no_halves, not_boolean, all };
/// What an operation on floats is on a CPU: see op_table.inc.
enum class CpuForm : std::uint8_t { spelled, intrinsic, library };

struct OpRow {
  Op op;
  std::string_view name;
  OpDomain domain;
  std::string_view cuda_f32, cuda_f64;
  CpuForm cpu;
  std::string_view cpu_name;
  int ulps;
  int additions;
  int slots;
};
const OpRow& row_of(Op op) noexcept;

/// Whether the operation may err, so that executors may differ in the last bits.
inline bool is_inexact(Op op) noexcept { return row_of(op).ulps > 0; }

}  // namespace chainfold::codegen
