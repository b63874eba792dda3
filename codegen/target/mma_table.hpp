// The table of matrix instructions: one row an instruction, everything known about it as data.
//
// Semantics. A row computes D = A * B + C with A of m x k, B of k x n, C and D of m x n. These are
// spread over the 32 lanes of a warp. With g = lane / 4 and t = lane % 4, element i of a lane's A,
// B or C stands at the matrix position that `position` gives. Elements of a lane are numbered from
// the low bits of its first register. Source: PTX ISA 9.0, 9.7.14.5.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

/// Which operand of a matrix instruction a fragment holds; C stands for D too.
enum class Operand : std::uint8_t { a, b, c };

/// How an instruction rounds its sums.
enum class MmaRounding : std::uint8_t { toward_zero, to_nearest, exact };

struct MatrixPosition {
  int row = 0, column = 0;
  friend bool operator==(MatrixPosition, MatrixPosition) = default;
};

struct MmaRow {
  std::string_view name;      ///< "m16n8k16.f32.f16": shape, accumulator, input
  std::string_view mnemonic;  ///< of PTX, without operands
  std::string_view sass;      ///< prefix of the machine instruction: HMMA, IMMA or DMMA
  int m, n, k;
  DType input, accumulator;
  int first_arch;          ///< the first architecture that has it: 75, 80, 90
  int fraction_bits;       ///< F: aligned products are cut to this many bits; 0 where exact or IEEE
  int products_per_group;  ///< products summed at once with C, group after group; 0: all of k
  MmaRounding rounding;
  double error_bound_u;  ///< proven bound of one instruction in units of 2^-24 * sum|products| on
                         ///< the architectures from first_arch on; see mma_error_bound for newer

  /// Elements of one operand that a lane holds.
  [[nodiscard]] int elements(Operand operand) const noexcept;
  /// 32-bit registers of one operand (f64 counts two an element).
  [[nodiscard]] int registers(Operand operand) const noexcept;
  /// The matrix position of element `i` of `lane`'s fragment of `operand`.
  [[nodiscard]] MatrixPosition position(Operand operand, int lane, int i) const noexcept;
};

/// All rows, in the order of the table; a row's index is its identity in programs.
std::span<const MmaRow> mma_table() noexcept;
/// The best row for inputs of `input` on architecture `arch` (75, 80, ...): index, or -1 for none.
int find_mma(DType input, int arch) noexcept;
/// The proven error of one instruction of `row` on `arch`, in units of 2^-24 times |C| plus the sum
/// of the absolute products. Reference: the rounding model with F fraction bits; 0 where exact. For
/// tf32, against inputs cut to tf32. C must be 0 or a sum of such products. Zero and subnormal
/// factors add at most 2^-140 of the largest factor, because they are aligned by their type's least
/// exponent.
double mma_error_bound(const MmaRow& row, int arch) noexcept;
/// The same of one instruction that sums data: C is 0 and one operand of zeros and ones. The
/// largest term loses nothing when terms are aligned.
double mma_sum_error_bound(const MmaRow& row, int arch) noexcept;
/// The row of which a lane's A fragment holds `elements` of `input`, or -1.
int find_mma_of(DType input, int arch, int elements) noexcept;
/// F and the group size on `arch` (Ampere and Hopper differ for the same instruction).
int mma_fraction_bits(const MmaRow& row, int arch) noexcept;
int mma_products_per_group(const MmaRow& row, int arch) noexcept;

}  // namespace chainfold::codegen
