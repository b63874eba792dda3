// The rows of op_table.inc as data.
#pragma once

#include <string_view>

#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::codegen {

/// The types that an operation is defined on.
enum class OpDomain : std::uint8_t {
  numbers,  ///< integers, f32 and f64
  floats,   ///< f32 and f64
  bits,     ///< integers and boolean
  integers,
  no_halves,    ///< all but f16 and bf16
  not_boolean,  ///< all but boolean
  all
};
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
