// Constant matrices, kept symbolic until emission.
//
// Semantics. A ConstMatrix names the logical 0/1 matrix W by which a tile of data is multiplied.
// The data of one matrix instruction is what a warp loaded with `load_width` elements a lane.
// Column n of B is the run of 4 * load_width consecutive elements of quad n (lanes 4n .. 4n+3).
// Instruction `step` takes elements [step * e, (step + 1) * e) of each lane of it, where e is how
// many elements of B a lane holds. The instruction's k slots are therefore a permutation of
// positions in that run. W's columns are given by position, and constant_element permutes them, so
// the data never moves.
//
// Data may also be operand A, whose rows are then runs of their own and W is operand B: see
// QuadLayout. Lanes find the results of their own elements in D, which suits scans.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "chainfold/codegen/target/mma_table.hpp"

namespace chainfold::codegen {

enum class MatrixKind : std::uint8_t {
  zeros,         ///< all 0: the start of a chain
  ones,          ///< P: every row sums its column
  upper,         ///< U: row r has ones at positions >= r (columns of a scan's inclusive sums)
  strict_lower,  ///< L: row r has ones at positions < r (exclusive sums of what stands before)
  band,          ///< B: row r has ones at positions r .. r + parameter - 1 (a sliding window)
  segments,      ///< row r has ones at positions r * parameter .. (r + 1) * parameter - 1
  // As operand B alone:
  lower,         ///< column p has ones at positions >= p (a scan's sums from the end)
  before_lanes,  ///< even columns have ones at positions of lanes before the column's; odd ones sum
                 ///< all
  after_lanes,   ///< the same of lanes behind it
};

struct ConstMatrix {
  MatrixKind kind = MatrixKind::ones;
  int parameter = 0;   ///< window or segment length where the kind has one. Of upper, lower,
                       ///< before_lanes and after_lanes as operand B: positions of other segments
                       ///< of so many count as 0; 0: there is one
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

/// Data as operand A of `row`. A lane's elements, as many as its A fragment has, are cut into
/// `halves` of `held`. Half h of the lanes of a quad makes one row of A, lane after lane. A row of
/// A is thus a run of 4 * held positions, of which lane t holds t * held and those behind. Lane t
/// of a row finds columns 2t and 2t + 1 of D. Instruction `step` of a scan gives it the sums for
/// its elements 2 * step and 2 * step + 1 of each half.
struct QuadLayout {
  int halves = 1;  ///< of a lane's elements, each in a row of A of its own
  int held = 1;    ///< elements of a half
  int run = 1;     ///< of them side by side in one register
  explicit QuadLayout(const MmaRow& row) noexcept;
  /// Element of the lane's load that the i-th of its A fragment is.
  [[nodiscard]] int element(int i) const noexcept;
  /// The position within its row that slot `k` holds.
  [[nodiscard]] int position(int k) const noexcept;
  /// Instructions that give every element its sum.
  [[nodiscard]] int steps() const noexcept { return (held + 1) / 2; }
};
/// Element (k, n) of the B operand that an instruction of `row` is given. Without a load width
/// slot k is position k and column n position 8 * step + n.
bool constant_b_element(const MmaRow& row, const ConstMatrix& matrix, int k, int n) noexcept;
/// Which fragments a kind has.
bool serves_a(MatrixKind kind) noexcept;
bool serves_b(MatrixKind kind) noexcept;

/// For each element i of a lane's A or B fragment: the lanes whose element is 1, as bits. Only
/// zeros have C fragments.
std::array<std::uint32_t, 16> lane_masks(const MmaRow& row, Operand operand,
                                         const ConstMatrix& matrix) noexcept;
/// "ones", "segments(16) of 8-wide loads, step 1".
std::string print(const ConstMatrix& matrix);

}  // namespace chainfold::codegen
