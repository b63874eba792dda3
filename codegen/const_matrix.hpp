// Constant matrices, kept symbolic until emission.
//
// Semantics. A ConstMatrix names the logical 0/1 matrix W by which a tile of data is multiplied.
// The data of one matrix instruction is what a warp loaded with `load_width` elements a lane:
// column n of B is the run of 4 * load_width consecutive elements of quad n (lanes 4n .. 4n+3), of
// which instruction `step` takes elements [step * e, (step + 1) * e) of each lane, e = elements of
// B a lane holds. The instruction's k slots are therefore a permutation of positions in that run;
// W's columns are given by position, and constant_element permutes them, so the data never moves.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "chainfold/codegen/mma_table.hpp"

namespace chainfold::codegen {

enum class MatrixKind : std::uint8_t {
  zeros,         ///< all 0: the start of a chain
  ones,          ///< P: every row sums its column
  upper,         ///< U: row r has ones at positions >= r (columns of a scan's inclusive sums)
  strict_lower,  ///< L: row r has ones at positions < r (exclusive sums of what stands before)
  band,          ///< B: row r has ones at positions r .. r + parameter - 1 (a sliding window)
  segments,      ///< row r has ones at positions r * parameter .. (r + 1) * parameter - 1
};

struct ConstMatrix {
  MatrixKind kind = MatrixKind::ones;
  int parameter = 0;   ///< window or segment length where the kind has one
  int load_width = 0;  ///< elements a lane loads at once (the layout that permutes the columns); 0:
                       ///< slot k holds position k
  int step = 0;        ///< which of the instructions that share one load
  friend bool operator==(const ConstMatrix&, const ConstMatrix&) = default;
};

/// W's element at (row, position), before any permutation.
bool logical_element(const ConstMatrix& matrix, int row, int position) noexcept;
/// The position within a quad's run that slot `k` of instruction `matrix.step` holds.
int position_of_slot(const MmaRow& row, const ConstMatrix& matrix, int k) noexcept;
/// Element (r, k) of the A operand that an instruction of `row` is given.
bool constant_element(const MmaRow& row, const ConstMatrix& matrix, int r, int k) noexcept;
/// For each element i of a lane's A fragment: the lanes whose element is 1, as bits. Only zeros
/// have B and C fragments.
std::array<std::uint32_t, 16> lane_masks(const MmaRow& row, Operand operand,
                                         const ConstMatrix& matrix) noexcept;
/// "ones", "segments(16) of 8-wide loads, step 1".
std::string print(const ConstMatrix& matrix);

}  // namespace chainfold::codegen
