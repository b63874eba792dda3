#include "chainfold/codegen/target/mma_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace chainfold::codegen {
namespace {

constexpr Operand kOperands[] = {Operand::a, Operand::b, Operand::c};

std::pair<int, int> shape(const MmaRow& row, Operand operand) {
  if (operand == Operand::a) return {row.m, row.k};
  if (operand == Operand::b) return {row.k, row.n};
  return {row.m, row.n};
}

class MmaRows : public testing::TestWithParam<int> {
 protected:
  const MmaRow& row() const { return mma_table()[static_cast<std::size_t>(GetParam())]; }
};

// Postconditions of a layout: (1) every position lies inside the matrix, (2) no position is held
// twice, (3) all positions are held.
TEST_P(MmaRows, LayoutsAreBijections) {
  for (Operand operand : kOperands) {
    const auto [rows, columns] = shape(row(), operand);
    std::set<std::pair<int, int>> held;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < row().elements(operand); ++i) {
        const MatrixPosition at = row().position(operand, lane, i);
        EXPECT_TRUE(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns);
        EXPECT_TRUE(held.insert({at.row, at.column}).second) << lane << " " << i;
      }
    }
    EXPECT_EQ(held.size(), static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  }
}

// The formulas of PTX, written out shape by shape.
MatrixPosition ptx(const MmaRow& row, Operand operand, int lane, int i) {
  const int g = lane >> 2, t = lane & 3;
  const bool wide = row.m == 16;
  if (operand == Operand::c)
    return wide ? MatrixPosition{g + 8 * (i >= 2), 2 * t + (i & 1)} : MatrixPosition{g, 2 * t + i};
  const bool a = operand == Operand::a;
  if (row.k == 16 && wide) {
    const bool upper = i == 0 || i == 1 || i == 4 || i == 5;
    return a ? MatrixPosition{g + 8 * !upper, 2 * t + (i & 1) + 8 * (i >= 4)}
             : MatrixPosition{2 * t + (i & 1) + 8 * (i >= 2), g};
  }
  if (row.k == 8 && row.input != DType::f32) {
    return a ? MatrixPosition{g + 8 * (i >= 2), 2 * t + (i & 1)} : MatrixPosition{2 * t + i, g};
  }
  if (row.k == 8)
    return a ? MatrixPosition{g + 8 * (i & 1), t + 4 * (i >= 2)} : MatrixPosition{t + 4 * i, g};
  if (row.k == 4) return a ? MatrixPosition{g, t} : MatrixPosition{t, g};
  if (row.k == 32) {
    const bool lower = (i >= 4 && i < 8) || i >= 12;
    return a ? MatrixPosition{g + 8 * lower, 4 * t + (i & 3) + 16 * (i >= 8)}
             : MatrixPosition{4 * t + (i & 3) + 16 * (i >= 4), g};
  }
  return a ? MatrixPosition{g, 4 * t + i} : MatrixPosition{4 * t + i, g};
}

TEST_P(MmaRows, LayoutsAreThoseOfPtx) {
  for (Operand operand : kOperands) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < row().elements(operand); ++i) {
        EXPECT_EQ(row().position(operand, lane, i), ptx(row(), operand, lane, i))
            << lane << " " << i;
      }
    }
  }
}

TEST_P(MmaRows, FieldsAgreeWithEachOther) {
  const std::string shape_name =
      "m" + std::to_string(row().m) + "n" + std::to_string(row().n) + "k" + std::to_string(row().k);
  EXPECT_TRUE(row().name.starts_with(shape_name + "."));
  EXPECT_TRUE(row().mnemonic.starts_with("mma.sync.aligned." + shape_name + ".row.col."));
  EXPECT_EQ(row().rounding == MmaRounding::exact, is_integer(row().input));
  EXPECT_EQ(row().k % mma_products_per_group(row(), row().first_arch), 0);
  EXPECT_DOUBLE_EQ(row().error_bound_u, mma_error_bound(row(), row().first_arch));
  EXPECT_LE(mma_error_bound(row(), 90), row().error_bound_u);
  EXPECT_LE(row().registers(Operand::a), 4);
}
INSTANTIATE_TEST_SUITE_P(MmaTable, MmaRows, testing::Range(0, static_cast<int>(mma_table().size())),
                         [](const auto& instance) {
                           std::string name(
                               mma_table()[static_cast<std::size_t>(instance.param)].name);
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

TEST(MmaTable, BoundsFollowTheRoundingModel) {
  const MmaRow& f16 = mma_table()[static_cast<std::size_t>(find_mma(DType::f16, 80))];
  EXPECT_DOUBLE_EQ(mma_error_bound(f16, 80), 22);
  EXPECT_DOUBLE_EQ(mma_error_bound(f16, 89), 22);
  EXPECT_DOUBLE_EQ(mma_error_bound(f16, 90), 10.5);
  EXPECT_DOUBLE_EQ(mma_error_bound(f16, 120), 10.5);
  EXPECT_EQ(mma_fraction_bits(f16, 80), 24);
  EXPECT_EQ(mma_fraction_bits(f16, 90), 25);
  EXPECT_EQ(mma_products_per_group(f16, 80), 8);
  EXPECT_EQ(mma_products_per_group(f16, 90), 16);
  const MmaRow& tf32 = mma_table()[static_cast<std::size_t>(find_mma(DType::f32, 80))];
  EXPECT_EQ(mma_products_per_group(tf32, 86), 4);
  EXPECT_EQ(mma_products_per_group(tf32, 90), 8);
  EXPECT_DOUBLE_EQ(mma_error_bound(tf32, 80), 14);
  EXPECT_DOUBLE_EQ(mma_error_bound(tf32, 90), 6.5);
  const MmaRow& f64 = mma_table()[static_cast<std::size_t>(find_mma(DType::f64, 80))];
  EXPECT_DOUBLE_EQ(mma_error_bound(f64, 90) * 0x1p-24, 4 * 0x1p-53);
}

TEST(MmaTable, SumsOfDataAloneErrLess) {
  auto bound = [](DType type, int elements, int arch) {
    return mma_sum_error_bound(
        mma_table()[static_cast<std::size_t>(find_mma_of(type, arch, elements))], arch);
  };
  EXPECT_DOUBLE_EQ(bound(DType::f16, 8, 90), 15 * 0.5 + 2);
  EXPECT_DOUBLE_EQ(bound(DType::f16, 8, 80), (7 + 2) + (8 + 2));
  EXPECT_DOUBLE_EQ(bound(DType::bf16, 4, 90), 7 * 0.5 + 2);
  EXPECT_DOUBLE_EQ(bound(DType::f16, 4, 75), 7 + 2);
  EXPECT_EQ(bound(DType::i8, 16, 80), 0);
  EXPECT_EQ(find_mma_of(DType::f16, 75, 8), -1);
  EXPECT_EQ(find_mma_of(DType::f16, 90, 16), -1);
}

TEST(MmaTable, FindsTheLargestRowThatTheArchitectureHas) {
  auto name = [](DType type, int arch) {
    const int index = find_mma(type, arch);
    return index < 0 ? std::string()
                     : std::string(mma_table()[static_cast<std::size_t>(index)].name);
  };
  EXPECT_EQ(name(DType::f16, 90), "m16n8k16.f32.f16");
  EXPECT_EQ(name(DType::f16, 75), "m16n8k8.f32.f16");
  EXPECT_EQ(name(DType::bf16, 80), "m16n8k16.f32.bf16");
  EXPECT_EQ(name(DType::i8, 80), "m16n8k32.i32.i8");
  EXPECT_EQ(name(DType::u8, 75), "m8n8k16.i32.u8");
  EXPECT_EQ(name(DType::f64, 80), "m8n8k4.f64.f64");
  EXPECT_EQ(name(DType::bf16, 75), "");
  EXPECT_EQ(name(DType::f64, 75), "");
  EXPECT_EQ(name(DType::f16, 0), "");
  EXPECT_EQ(name(DType::i32, 90), "");
}

}  // namespace
}  // namespace chainfold::codegen
