#include "chainfold/codegen/target/const_matrix.hpp"

#include <string_view>

#include <fmt/format.h>

namespace chainfold::codegen {

bool logical_element(const ConstMatrix& matrix, int row, int position) noexcept {
  switch (matrix.kind) {
    case MatrixKind::zeros: return false;
    case MatrixKind::ones: return true;
    case MatrixKind::upper: return position >= row;
    case MatrixKind::strict_lower: return position < row;
    case MatrixKind::band: return position >= row && position < row + matrix.parameter;
    case MatrixKind::segments:
      return position >= row * matrix.parameter && position < (row + 1) * matrix.parameter;
    case MatrixKind::lower:
    case MatrixKind::before_lanes:
    case MatrixKind::after_lanes: return false;
  }
  return false;
}

int position_of_slot(const MmaRow& row, const ConstMatrix& matrix, int k) noexcept {
  if (matrix.load_width == 0) return k;
  const int held = row.elements(Operand::b);
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < held; ++i) {
      if (row.position(Operand::b, t, i).row == k) {
        return t * matrix.load_width + matrix.step * held + i;
      }
    }
  }
  return -1;  // k is no slot of this row
}

bool constant_element(const MmaRow& row, const ConstMatrix& matrix, int r, int k) noexcept {
  return logical_element(matrix, r, position_of_slot(row, matrix, k));
}

QuadLayout::QuadLayout(const MmaRow& row) noexcept
    : halves(row.m / 8),
      held(row.elements(Operand::a) / halves),
      run(size_of(row.input) >= 4 ? 1 : 4 / size_of(row.input)) {}

int QuadLayout::element(int i) const noexcept {
  const int reg = i / run;
  return reg % halves * held + reg / halves * run + i % run;
}

int QuadLayout::position(int k) const noexcept {
  const int quad = 4 * run;  // slots of a register of four lanes
  return k % quad / run * held + k / quad * run + k % run;
}

bool serves_a(MatrixKind kind) noexcept { return kind < MatrixKind::lower; }

bool serves_b(MatrixKind kind) noexcept {
  return kind == MatrixKind::zeros || kind == MatrixKind::ones || kind == MatrixKind::upper ||
         kind == MatrixKind::lower || kind == MatrixKind::before_lanes ||
         kind == MatrixKind::after_lanes;
}

bool constant_b_element(const MmaRow& row, const ConstMatrix& matrix, int k, int n) noexcept {
  const QuadLayout layout(row);
  const bool permuted = matrix.load_width != 0;
  const int from = permuted ? layout.position(k) : k;
  const int lane = n / 2;
  const int own = lane * layout.held;  // the column's lane's first element
  const bool whole_lanes =
      matrix.kind == MatrixKind::before_lanes || matrix.kind == MatrixKind::after_lanes;
  int to = permuted ? own + 2 * matrix.step + n % 2 : row.n * matrix.step + n;
  if (whole_lanes) to = own;
  const bool same = matrix.parameter == 0 || from / matrix.parameter == to / matrix.parameter;
  switch (matrix.kind) {
    case MatrixKind::ones: return true;
    case MatrixKind::upper: return same && from <= to;
    case MatrixKind::lower: return same && from >= to;
    case MatrixKind::before_lanes: return n % 2 == 1 || (same && from < own);
    case MatrixKind::after_lanes: return n % 2 == 1 || (same && from >= own + layout.held);
    default: return false;
  }
}

std::array<std::uint32_t, 16> lane_masks(const MmaRow& row, Operand operand,
                                         const ConstMatrix& matrix) noexcept {
  std::array<std::uint32_t, 16> masks{};
  if (matrix.kind == MatrixKind::zeros || operand == Operand::c) return masks;
  for (int i = 0; i < row.elements(operand); ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const MatrixPosition at = row.position(operand, lane, i);
      if (operand == Operand::a ? constant_element(row, matrix, at.row, at.column)
                                : constant_b_element(row, matrix, at.row, at.column)) {
        masks[static_cast<std::size_t>(i)] |= 1u << lane;
      }
    }
  }
  return masks;
}

std::string print(const ConstMatrix& matrix) {
  constexpr std::string_view kNames[] = {"zeros",        "ones",         "upper",
                                         "strict_lower", "band",         "segments",
                                         "lower",        "before_lanes", "after_lanes"};
  std::string text{kNames[static_cast<int>(matrix.kind)]};
  if (matrix.parameter != 0) {
    text += fmt::format("({})", matrix.parameter);
  }
  if (matrix.load_width != 0) {
    text += fmt::format(" of {}-wide loads, step {}", matrix.load_width, matrix.step);
  }
  return text;
}

}  // namespace chainfold::codegen
