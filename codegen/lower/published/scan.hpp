// ScanSquares: what the lowerings of the published scans share. A square is 16 x 16 elements in
// row-major order as operand A. So A * U holds the prefixes of its rows, and (L * A) * 1 what the
// rows before each sum up to.
//
// The square's fragment comes by four loads of two neighbours a lane. L * A takes it as operand B,
// whose layout is another: it goes through shared memory, as in the paper. Rows meet in that
// product, so that a NaN reaches what comes before it: these plans are for finite data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/lower/published/square.hpp"
#include "chainfold/codegen/lower/tile/states.hpp"
#include "chainfold/codegen/lower/tile/tile.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/published.hpp"

namespace chainfold::codegen {

class ScanSquares {
 public:
  static constexpr int kRun = SquareLowering::kRun, kSquare = SquareLowering::kSquare;
  static constexpr int kPieces = 4, kPair = 2;  ///< pairs of elements of a square that a lane holds

  /// Pairs of rows g and g + 8, first of columns 0 to 7, then of 8 to 15.
  struct Square {
    std::array<Loaded, kPieces> data;
  };
  /// The same of f32.
  using Values = std::array<ValueId, kPieces>;

  ScanSquares(Builder& builder, Program& program, const Graph& graph, const Plan& plan);

  TileLowering& tile() { return tile_; }

  /// Rows of the square lie `stride` apart; masks are of rows g and g + 8.
  Square load(ValueId first, std::int64_t stride, const std::array<ValueId, 2>& masks);
  void store(const Square& square, const Values& values, ValueId first, std::int64_t stride,
             ValueId extent);
  /// The same of 256 elements in a row, of which those from `left` on do not exist. They go through
  /// shared memory, and are shared with that as square 0. Contains a barrier.
  Square load_ragged(ValueId first, ValueId left);
  /// The values of elements before `left` to the output.
  void store_ragged(const Values& values, ValueId first, ValueId left);

  /// A * U + c, where c has one value a row (of rows g and g + 8), or none.
  std::array<ValueId, 2> rows_scanned(const Square& square, const std::array<ValueId, 2>& c);
  Values values_of(const std::array<ValueId, 2>& d);
  /// Every lane receives the last values of its rows g and g + 8.
  std::array<ValueId, 2> last_column(const Values& values);
  ValueId last_value(ValueId of_last_row);

  /// Room in shared memory for `squares` of each warp.
  void declare_squares(int squares);
  /// Hands a square over; a barrier must stand before it is multiplied from the left.
  void share(const Square& square, int index);
  /// L * A, rows before each: columns 0 to 7 and 8 to 15.
  std::array<ValueId, 2> rows_before(int index);
  /// A whole square scanned: the values, and what its last one is the sum of.
  struct Scanned {
    Values values{};
    std::vector<ValueId> parts;  ///< in all lanes
  };
  Scanned scanned(const Square& square, int index, const std::array<ValueId, 2>& c);
  Partial state_of(const Scanned& square);
  /// Adds to all of `values` what a state holds.
  void add(Values& values, const Partial& state);

  /// The warps' partial sums meet in shared memory: what comes before the warp's square, and the
  /// fold of all. Contains a barrier.
  std::pair<Partial, Partial> meet(const Scanned& result, const StateArrays& partials);
  StateArrays declare_partials();

 private:
  /// What comes before the warp, and the fold of all.
  std::pair<Partial, Partial> partials_by_lanes(const Partial& of_warps);
  /// The partial sums, rounded, as the first row of a square, times U.
  std::pair<Partial, Partial> partials_by_product(const Partial& of_warps);
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  ValueId zero() { return b_.const_fragment(row_, Operand::c, {.kind = MatrixKind::zeros}); }
  ValueId room(int index) { return b_.add(room_, b_.i64(std::int64_t{index} * kSquare)); }
  Address address(ValueId first, int piece, std::int64_t stride);

  Builder& b_;
  Program& program_;
  const Graph& graph_;
  const Plan& plan_;
  TileLowering tile_;
  int row_;
  DType element_;
  int squares_ = -1;  // the shared array
  ValueId room_ = kNoValue;
};
Program lower_published_scan(const Graph& graph, const Plan& plan, const Target& target);

}  // namespace chainfold::codegen
