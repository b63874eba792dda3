#include "chainfold/codegen/const_matrix.hpp"

#include <fmt/format.h>

#include <string_view>

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

std::array<std::uint32_t, 16> lane_masks(const MmaRow& row, Operand operand,
                                         const ConstMatrix& matrix) noexcept {
  std::array<std::uint32_t, 16> masks{};
  if (matrix.kind == MatrixKind::zeros || operand != Operand::a) return masks;
  for (int i = 0; i < row.elements(operand); ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const MatrixPosition at = row.position(operand, lane, i);
      if (constant_element(row, matrix, at.row, at.column)) {
        masks[static_cast<std::size_t>(i)] |= 1u << lane;
      }
    }
  }
  return masks;
}

std::string print(const ConstMatrix& matrix) {
  constexpr std::string_view kNames[] = {"zeros",        "ones", "upper",
                                         "strict_lower", "band", "segments"};
  std::string text{kNames[static_cast<int>(matrix.kind)]};
  if (matrix.kind == MatrixKind::band || matrix.kind == MatrixKind::segments) {
    text += fmt::format("({})", matrix.parameter);
  }
  if (matrix.load_width != 0) {
    text += fmt::format(" of {}-wide loads, step {}", matrix.load_width, matrix.step);
  }
  return text;
}

}  // namespace chainfold::codegen
