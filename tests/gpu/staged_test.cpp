// The staged strategy on the GPU with rings that turn and results that leave in several batches,
// from aligned and from odd addresses.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

struct StagedCase {
  const char* program;
  std::int64_t segment;
  int lanes, rows, stages, batch;
  int shift;  ///< elements off an aligned address
};

const StagedCase kCases[] = {
    {"sum_f16", 64, 8, 4, 2, 3, 0},        {"sum_f16", 37, 1, 1, 2, 2, 0},
    {"sum_f16", 37, 2, 2, 4, 4, 3},        {"sum_bf16", 777, 32, 1, 2, 2, 1},
    {"sum_f32", 3, 1, 4, 4, 5, 0},         {"sum_f32", 100, 8, 1, 2, 2, 1},
    {"sum_i8", 77, 8, 2, 2, 3, 7},         {"sum_i8", 5, 1, 8, 2, 2, 0},
    {"sum_f64", 33, 4, 1, 2, 2, 0},        {"dot_f16", 99, 4, 2, 2, 2, 5},
    {"frames", 50, 8, 4, 2, 2, 0},         {"filter_f16", 31, 1, 2, 4, 5, 0},
    {"argmax_f32", 33, 1, 1, 2, 2, 1},     {"longest_run_f32", 64, 32, 4, 2, 2, 0},
    {"variance_f32", 255, 32, 2, 2, 4, 2},
};

class GpuStaged : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuStaged, IsRight) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const StagedCase& staged = kCases[GetParam()];
  constexpr std::int64_t kWarps = 2, kRounds = 7;
  const std::int64_t tile = std::int64_t{32} / staged.lanes * staged.rows * staged.segment;
  DeviceCase what{.segment = staged.segment, .seed = GetParam() + 1, .shift = staged.shift};
  // Rounds that do not divide evenly, and segments that fill no tile.
  what.elements = (kRounds * target("gpu").processors * kWarps - 3) * tile + 5 * staged.segment;
  what.fill = program(staged.program).fills.front();
  what.plan =
      fmt::format("staged warps={} lanes={} rows={} stages={} burst={} blocks=1 bytes=16 mma",
                  kWarps, staged.lanes, staged.rows, staged.stages, staged.batch);
  EXPECT_EQ(check_on_device(program(staged.program), what).problems, "") << what.plan;
}

INSTANTIATE_TEST_SUITE_P(All, GpuStaged, testing::Range(std::size_t{0}, std::size(kCases)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", info.index, kCases[info.param].program,
                                              kCases[info.param].segment);
                         });

/// Small enough for compute-sanitizer, and yet so many segments that blocks take several batches,
/// the last of which are shared out unevenly; or that some blocks come late, or all take a batch.
struct BurstCase {
  const char* program;
  std::int64_t segment;
  int warps, lanes, rows, stages, batch, late;
  int shift;
};

const BurstCase kBursts[] = {
    {"sum_f16", 136, 1, 32, 1, 1, 1, 0, 0},        {"sum_f16", 37, 2, 8, 1, 2, 2, 0, 3},
    {"sum_f32", 68, 2, 32, 1, 2, 4, 0, 0},         {"dot_f16", 133, 1, 32, 1, 1, 3, 1, 5},
    {"longest_run_f32", 65, 2, 32, 1, 2, 4, 1, 0}, {"frames", 40, 1, 8, 1, 2, 6, 2, 0},
    {"variance_f32", 72, 2, 32, 1, 4, 4, 0, 1},    {"sum_f16", 37, 2, 8, 1, 2, 4, 4, 3},
    {"sum_f32", 5, 1, 1, 2, 2, 3, 3, 0},           {"dot_f16", 256, 1, 32, 1, 2, 3, 1, 0},
};

class GpuSmallBursts : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuSmallBursts, FollowEachOther) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::int64_t kTurns = 3;
  const BurstCase& c = kBursts[GetParam()];
  const std::int64_t round = std::int64_t{32} / c.lanes * c.rows * c.warps;
  const std::int64_t turn = std::int64_t{c.batch} * target("gpu").processors * round;
  DeviceCase what{.segment = c.segment, .seed = GetParam() + 1, .shift = c.shift};
  what.elements = (kTurns * turn + turn / 3 + 1) * c.segment;
  what.fill = program(c.program).fills.front();
  what.plan = fmt::format(
      "staged warps={} lanes={} rows={} stages={} burst={}{} blocks=1 bytes=16 mma", c.warps,
      c.lanes, c.rows, c.stages, c.batch, c.late > 0 ? fmt::format(" late={}", c.late) : "");
  EXPECT_EQ(check_on_device(program(c.program), what).problems, "") << what.plan;
}

INSTANTIATE_TEST_SUITE_P(All, GpuSmallBursts, testing::Range(std::size_t{0}, std::size(kBursts)),
                         [](const auto& info) {
                           return fmt::format("{}_{}_{}", info.index, kBursts[info.param].program,
                                              kBursts[info.param].segment);
                         });

}  // namespace
}  // namespace chainfold::test
