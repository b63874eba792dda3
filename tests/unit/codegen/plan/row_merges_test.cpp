#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/machine.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/row_merges.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

using codegen::LanePair;
using codegen::Plan;
using codegen::RowMerges;

Plan plan_of(int lanes, bool patterns, std::int64_t segment = 8) {
  Plan plan;
  plan.segment = segment;
  plan.lanes_per_segment = lanes;
  plan.vector_lanes = patterns;
  return plan;
}

/// What a lane holds: the elements that it stands for, in the order in which they were merged.
struct Element {
  int row, segment, place;
  bool operator==(const Element&) const = default;
};
using Held = std::vector<Element>;
using Row = std::vector<Held>;  // one a lane

Row row_of(int row, int lanes) {
  Row held;
  for (int lane = 0; lane < codegen::kWarpWidth; ++lane)
    held.push_back({{row, lane / lanes, lane % lanes}});
  return held;
}

/// The rows that differ from `row` in the bits of the first merges.
Row merged(const RowMerges& merges, int row, int count, int lanes) {
  if (count == 0) return row_of(row, lanes);
  const Row a = merged(merges, row, count - 1, lanes);
  const Row b = merged(merges, row + (1 << merges.row_bit(count - 1)), count - 1, lanes);
  const LanePair pair = merges.pairs()[static_cast<std::size_t>(count - 1)];
  Row result;
  for (int lane = 0; lane < codegen::kWarpWidth; ++lane) {
    Held held;
    for (const int half : {0, 1}) {
      const int from = pair.source(lane, half);
      const Held& side =
          (from < codegen::kWarpWidth ? a
                                      : b)[static_cast<std::size_t>(from % codegen::kWarpWidth)];
      held.insert(held.end(), side.begin(), side.end());
    }
    result.push_back(held);
  }
  return result;
}

/// Every row's segments, each in the lane that is told, with each of its elements once; in order
/// where that is asked for.
void expect_sound(const RowMerges& merges, int rows, int lanes, bool ordered) {
  Row held = merged(merges, 0, static_cast<int>(merges.pairs().size()), lanes);
  for (const int bit : merges.left()) {
    Row next = held;
    for (int lane = 0; lane < codegen::kWarpWidth; ++lane) {
      const int other = lane ^ 1 << bit;
      const Held& right = held[static_cast<std::size_t>(std::max(lane, other))];
      next[static_cast<std::size_t>(lane)] = held[static_cast<std::size_t>(std::min(lane, other))];
      Held& all = next[static_cast<std::size_t>(lane)];
      all.insert(all.end(), right.begin(), right.end());
    }
    held = next;
  }
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < codegen::kWarpWidth / lanes; ++k) {
      Held found = held[static_cast<std::size_t>(merges.lane_of(row, k))];
      if (!ordered)
        std::sort(found.begin(), found.end(),
                  [](const Element& a, const Element& b) { return a.place < b.place; });
      Held expected;
      for (int place = 0; place < lanes; ++place) expected.push_back({row, k, place});
      EXPECT_EQ(found, expected) << "row " << row << ", segment " << k;
    }
  }
}

TEST(RowMerges, BringEverySegmentTogetherWhereTheySay) {
  const auto sum_of = [](auto x) { return over(segments(8), sum(x)); };
  const auto max_of = [](auto x) { return over(segments(8), max(x)); };
  const std::pair<std::string, Computation> folds[] = {
      {"f16", sum_of(input<f16>("x"))},
      {"f32", sum_of(input<float>("x"))},
      {"f64", sum_of(input<double>("x"))},
      {"i32", sum_of(input<std::int32_t>("x"))},
      {"i8", max_of(input<std::int8_t>("x"))},
      {"i16", max_of(input<std::int16_t>("x"))},
      {"i64", max_of(input<std::int64_t>("x"))},
      {"variance", over(segments(8), variance(input<float>("x")))},
      {"in order", program("longest_run_f32").over(segments(8))},
  };
  for (const auto& [name, fold] : folds) {
    for (const bool patterns : {false, true}) {
      for (int lanes = 1; lanes <= codegen::kWarpWidth; lanes *= 2) {
        for (int rows = 1; rows <= lanes; rows *= 2) {
          SCOPED_TRACE(name + ", patterns " + std::to_string(patterns) + ", lanes " +
                       std::to_string(lanes) + ", rows " + std::to_string(rows));
          for (const std::int64_t segment : {8, 4096}) {  // 4096: in the order of memory
            const RowMerges merges(fold.graph(), plan_of(lanes, patterns, segment), rows);
            ASSERT_EQ(std::size_t{1} << merges.pairs().size(), static_cast<std::size_t>(rows));
            expect_sound(merges, rows, lanes, needs_order(fold.graph()));
            for (std::size_t m = 0; segment > 8 && m < merges.pairs().size(); ++m)
              EXPECT_EQ(merges.row_bit(static_cast<int>(m)), static_cast<int>(m));
          }
        }
      }
    }
  }
}

/// With as many rows as lanes of a segment, and all of one, nothing is left to be moved.
TEST(RowMerges, RowsOfAWholeWarpLieInOrder) {
  const Computation fold = over(segments(64), sum(input<float>("x")));
  const RowMerges merges(fold.graph(), plan_of(codegen::kWarpWidth, true), codegen::kWarpWidth);
  for (int row = 0; row < codegen::kWarpWidth; ++row) EXPECT_EQ(merges.lane_of(row, 0), row);
  EXPECT_EQ(merges.left(), std::vector<int>{});
}

/// Registers of 64 bytes: first those, then neighbours within 128 bits, then runs of 128 bits.
TEST(RowMerges, PatternsKeepRunsOf128BitsTogether) {
  const Computation fold = over(segments(64), sum(input<float>("x")));
  const RowMerges merges(fold.graph(), plan_of(codegen::kWarpWidth, true), codegen::kWarpWidth);
  const auto sources = [&](std::size_t merge, int half) {
    std::vector<int> lanes;
    for (int lane = 0; lane < 16; ++lane) lanes.push_back(merges.pairs()[merge].source(lane, half));
    return lanes;
  };
  EXPECT_EQ(sources(0, 1),
            (std::vector{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}));
  EXPECT_EQ(sources(1, 0),
            (std::vector{0, 2, 32, 34, 4, 6, 36, 38, 8, 10, 40, 42, 12, 14, 44, 46}));
  EXPECT_EQ(sources(2, 1),
            (std::vector{1, 3, 33, 35, 5, 7, 37, 39, 9, 11, 41, 43, 13, 15, 45, 47}));
  EXPECT_EQ(sources(3, 0), (std::vector{0, 1, 2, 3, 8, 9, 10, 11, 32, 33, 34, 35, 40, 41, 42, 43}));
}

}  // namespace
}  // namespace chainfold::test
