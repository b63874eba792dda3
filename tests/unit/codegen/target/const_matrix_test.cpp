#include "chainfold/codegen/target/const_matrix.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace chainfold::codegen {
namespace {

class ConstMatrices : public testing::TestWithParam<int> {
 protected:
  const MmaRow& row() const { return mma_table()[static_cast<std::size_t>(GetParam())]; }
};

// Postconditions: the slots of all steps that share a load are a permutation of the quad's run.
TEST_P(ConstMatrices, SlotsOfAllStepsCoverTheRunOnce) {
  const int held = row().elements(Operand::b);
  for (int steps : {1, 2, 4}) {
    const int width = steps * held;
    std::set<int> positions;
    for (int step = 0; step < steps; ++step) {
      for (int k = 0; k < row().k; ++k) {
        const int at = position_of_slot(row(), {MatrixKind::ones, 0, width, step}, k);
        EXPECT_TRUE(at >= 0 && at < 4 * width);
        EXPECT_TRUE(positions.insert(at).second);
      }
    }
    EXPECT_EQ(positions.size(), static_cast<std::size_t>(4 * width));
  }
}

// A * B with the permuted constant and the data as it was loaded is W times the data in memory
// order.
TEST_P(ConstMatrices, ThePermutedConstantMeetsEveryElementWhereItLies) {
  const int held = row().elements(Operand::b), steps = 2, width = steps * held;
  for (const ConstMatrix& base :
       {ConstMatrix{MatrixKind::ones}, ConstMatrix{MatrixKind::upper},
        ConstMatrix{MatrixKind::strict_lower}, ConstMatrix{MatrixKind::band, 3},
        ConstMatrix{MatrixKind::segments, 5}}) {
    for (int r = 0; r < row().m; ++r) {
      for (int n = 0; n < row().n; ++n) {
        std::vector<int> weight(static_cast<std::size_t>(4 * width),
                                0);  // of each element of the quad's run
        for (int step = 0; step < steps; ++step) {
          ConstMatrix matrix = base;
          matrix.load_width = width;
          matrix.step = step;
          for (int lane = 4 * n; lane < 4 * n + 4; ++lane) {
            for (int i = 0; i < held; ++i) {
              const MatrixPosition at = row().position(Operand::b, lane, i);
              ASSERT_EQ(at.column, n);
              const int element = (lane % 4) * width + step * held + i;  // in memory order
              weight[static_cast<std::size_t>(element)] +=
                  constant_element(row(), matrix, r, at.row);
            }
          }
        }
        for (int p = 0; p < 4 * width; ++p) {
          ASSERT_EQ(weight[static_cast<std::size_t>(p)], logical_element(base, r, p))
              << r << " " << p;
        }
      }
    }
  }
}

TEST_P(ConstMatrices, LaneMasksAreTheElements) {
  const ConstMatrix matrix{MatrixKind::upper, 0, row().elements(Operand::b), 0};
  const auto masks = lane_masks(row(), Operand::a, matrix);
  int ones = 0;
  for (int i = 0; i < row().elements(Operand::a); ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const MatrixPosition at = row().position(Operand::a, lane, i);
      const bool set = (masks[static_cast<std::size_t>(i)] >> lane) & 1u;
      EXPECT_EQ(set, constant_element(row(), matrix, at.row, at.column));
      ones += set;
    }
  }
  int expected = 0;
  for (int r = 0; r < row().m; ++r) expected += row().k > r ? row().k - r : 0;
  EXPECT_EQ(ones, expected);
  for (std::uint32_t mask : lane_masks(row(), Operand::c, {MatrixKind::zeros})) EXPECT_EQ(mask, 0u);
}

// Data as operand A: a lane's elements fill its fragment once, halves in rows of their own, and
// slots of a row of A are its positions once.
TEST_P(ConstMatrices, DataAsAFillsRowsLaneAfterLane) {
  const QuadLayout layout(row());
  const int width = row().elements(Operand::a);
  EXPECT_EQ(layout.halves * layout.held, width);
  for (int lane = 0; lane < 32; ++lane) {
    std::set<int> elements;
    for (int i = 0; i < width; ++i) {
      const int element = layout.element(i);
      EXPECT_TRUE(element >= 0 && element < width);
      EXPECT_TRUE(elements.insert(element).second);
      const MatrixPosition at = row().position(Operand::a, lane, i);
      EXPECT_EQ(at.row / 8, element / layout.held);
      EXPECT_EQ(layout.position(at.column), lane % 4 * layout.held + element % layout.held);
    }
  }
}

// Column 2t + i of step s sums what lies before the lane's element in its half, or behind it.
TEST_P(ConstMatrices, ColumnsOfBAreTheLanesOwnSums) {
  const QuadLayout layout(row());
  if (layout.held < 2) return;
  const int width = row().elements(Operand::a);
  for (const int segment : {0, 2, layout.held, 2 * layout.held}) {
    auto same = [&](int a, int b) { return segment == 0 || a / segment == b / segment; };
    for (int k = 0; k < row().k; ++k) {
      const int from = layout.position(k);
      for (int t = 0; t < 4; ++t) {
        const int first = t * layout.held, behind = first + layout.held;
        for (int step = 0; step < layout.steps(); ++step) {
          for (int i = 0; i < 2; ++i) {
            const int to = first + 2 * step + i;
            EXPECT_EQ(
                constant_b_element(row(), {MatrixKind::upper, segment, width, step}, k, 2 * t + i),
                from <= to && same(from, to));
            EXPECT_EQ(
                constant_b_element(row(), {MatrixKind::lower, segment, width, step}, k, 2 * t + i),
                from >= to && same(from, to));
          }
        }
        const ConstMatrix before{MatrixKind::before_lanes, segment, width},
            after{MatrixKind::after_lanes, segment, width};
        EXPECT_EQ(constant_b_element(row(), before, k, 2 * t), from < first && same(from, first));
        EXPECT_EQ(constant_b_element(row(), after, k, 2 * t), from >= behind && same(from, first));
        EXPECT_TRUE(constant_b_element(row(), before, k, 2 * t + 1));
        EXPECT_TRUE(constant_b_element(row(), after, k, 2 * t + 1));
      }
    }
  }
}

TEST_P(ConstMatrices, LaneMasksOfBAreTheElements) {
  const ConstMatrix matrix{MatrixKind::upper, 0, row().elements(Operand::a), 0};
  const auto masks = lane_masks(row(), Operand::b, matrix);
  for (int i = 0; i < row().elements(Operand::b); ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const MatrixPosition at = row().position(Operand::b, lane, i);
      EXPECT_EQ((masks[static_cast<std::size_t>(i)] >> lane & 1u) != 0,
                constant_b_element(row(), matrix, at.row, at.column));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(ConstMatrix, ConstMatrices,
                         testing::Range(0, static_cast<int>(mma_table().size())));

TEST(ConstMatrix, LogicalMatrices) {
  auto line = [](const ConstMatrix& matrix, int row) {
    std::string text;
    for (int p = 0; p < 8; ++p) text += logical_element(matrix, row, p) ? '1' : '0';
    return text;
  };
  EXPECT_EQ(line({MatrixKind::zeros}, 2), "00000000");
  EXPECT_EQ(line({MatrixKind::ones}, 2), "11111111");
  EXPECT_EQ(line({MatrixKind::upper}, 2), "00111111");
  EXPECT_EQ(line({MatrixKind::strict_lower}, 2), "11000000");
  EXPECT_EQ(line({MatrixKind::band, 3}, 2), "00111000");
  EXPECT_EQ(line({MatrixKind::segments, 3}, 1), "00011100");
}

TEST(ConstMatrix, WithoutALoadSlotsAreNotPermuted) {
  for (int k = 0; k < 16; ++k)
    EXPECT_EQ(position_of_slot(mma_table()[0], {MatrixKind::ones}, k), k);
}

TEST(ConstMatrix, Prints) {
  EXPECT_EQ(print(ConstMatrix{MatrixKind::ones}), "ones");
  EXPECT_EQ(print(ConstMatrix{MatrixKind::segments, 16, 8, 1}),
            "segments(16) of 8-wide loads, step 1");
}

}  // namespace
}  // namespace chainfold::codegen
