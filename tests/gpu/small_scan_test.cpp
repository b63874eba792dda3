// Few launches of every strategy of scans, by lanes and on tensor cores, for the sanitizers; and
// the published scans, which nothing else runs on a device. Folds of few elements, in one launch of
// a cluster and in two, and of segments of a cluster each.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/codegen/plan/published.hpp"
#include "chainfold/codegen/plan/published_scan.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

struct SmallScan {
  const char* program;
  std::int64_t segment, elements;
  const char* plan;
  int shift = 0;  ///< elements off an aligned address
};
const SmallScan kSmallScans[] = {
    {"scan_sum_f32", 32, 32 * 301, "scan_tile warps=4 depth=2 blocks=0 bytes=16 simt"},
    {"scan_sum_i32", 37, 37 * 201, "scan_tile warps=2 depth=4 blocks=0 bytes=16 simt", 1},
    {"running_sum_f16", 64, 64 * 301, "scan_tile warps=4 depth=2 blocks=0 bytes=16 mma"},
    {"running_sum_f16", 4, 4 * 1000, "scan_tile warps=2 depth=1 blocks=0 bytes=8 mma"},
    {"scan_sum_f32", 1000, 1000 * 21, "scan_block warps=4 depth=4 blocks=0 bytes=16 simt"},
    {"running_sum_back_f16", 2048, 2048 * 9, "scan_block warps=4 depth=2 blocks=0 bytes=16 mma"},
    {"scan_both_ways_i32", 500, 500 * 21, "scan_block warps=4 depth=2 blocks=0 bytes=16 simt"},
    {"scan_share_f32", 333, 333 * 61, "scan_block warps=4 depth=3 blocks=0 bytes=16 simt", 3},
    {"scan_share_f64", 129, 129 * 83, "scan_block warps=2 depth=5 blocks=0 bytes=16 simt"},
    {"scan_both_ways_i32", 101, 101 * 99, "scan_block warps=2 depth=2 blocks=0 bytes=16 simt"},
    {"scan_sum_f32", 0, 70'001, "look_back warps=4 depth=2 tile=0 blocks=2 bytes=16 simt"},
    {"scan_longest_run_f32", 0, 30'001, "look_back warps=2 depth=2 tile=0 blocks=2 bytes=16 simt"},
    {"running_sum_f16", 0, 70'001, "look_back warps=4 depth=2 tile=0 blocks=2 bytes=16 mma"},
    {"running_sum_to_f16", 0, 70'001,
     "look_back warps=2 depth=5 staged=3 blocked=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_back_out_f32", 2304, 2304 * 9,
     "look_back warps=2 depth=3 staged=2 near=0 blocked=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_sum_i32", 5000, 5000 * 7, "look_back warps=2 depth=2 tile=0 blocks=2 bytes=16 simt", 3},
    {"scan_sum_i32", 5000, 5000 * 7,
     "look_back warps=2 depth=2 staged=1 across=4 tile=0 blocks=2 bytes=16 simt"},
    {"scan_sum_f32", 5001, 5001 * 7,
     "look_back warps=2 depth=3 staged=2 heads=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_filtered_f16", 777, 777 * 33,
     "look_back warps=4 depth=2 heads=1 tile=0 blocks=2 bytes=16 simt", 3},
    {"scan_horner_back_u8", 1001, 1001 * 29,
     "look_back warps=1 depth=2 heads=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_beside_sums_f16", 3001, 3001 * 11,
     "look_back warps=2 depth=2 staged=1 heads=1 tile=0 blocks=2 bytes=16 simt"},
    {"scan_sum_f32", 0, 40'001, "propagate warps=4 depth=2 tile=0 blocks=2 bytes=16 simt"},
    {"scan_share_f32", 1001, 1001 * 21, "propagate warps=2 depth=2 tile=0 blocks=2 bytes=16 simt"},
    {"scan_both_ways_i32", 5003, 5003 * 3,
     "propagate warps=1 depth=1 tile=0 blocks=2 bytes=16 simt"},
    {"running_sum_i8", 0, 40'001, "propagate warps=4 depth=2 tile=0 blocks=2 bytes=16 mma"},
    {"running_sum_f16", 16, 16 * 137, "scan16 warps=2 rows=4"},
    {"running_sum_f16", 112, 112 * 33, "scan16n warps=2 chain=1"},
    {"running_sum_bf16", 112, 112 * 17, "scan16n warps=2 chain=0"},
    {"running_sum_f16", 256, 256 * 11, "scan256 warps=2 rows=2"},
    {"running_sum_f16", 256, 256 * 11, "scan256 warps=2 rows=2 product=1"},
    {"running_sum_bf16", 768, 768 * 7, "scan256n warps=2 chain=1"},
    {"running_sum_f16", 1280, 1280 * 5, "scan256n warps=2 chain=0 product=1"},
    {"running_sum_f16", 4352, 4352 * 3, "scan_block256n warps=16"},
    {"running_sum_f16", 4352, 4352 * 3, "scan_block256n warps=16 product=1"},
    {"running_sum_f16", 0, 50'003, "scan_grid256n warps=4"},
    {"running_sum_bf16", 0, 50'003, "scan_grid256n warps=8 product=1"},
};

class GpuSmallScan : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuSmallScan, IsRight) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const SmallScan& scan = kSmallScans[GetParam()];
  DeviceCase what{.segment = scan.segment,
                  .elements = scan.elements,
                  .fill = Fill::whole,
                  .seed = GetParam(),
                  .shift = scan.shift,
                  .plan = scan.plan};
  if (codegen::is_published_scan(codegen::parse_choice(scan.plan).strategy)) {
    what.accuracy = Accuracy::as_published;
    what.nonfinite = NonFinite::assume_finite;
  }
  const Verdict verdict = check_on_device(program(scan.program), what);
  EXPECT_EQ(verdict.problems, "") << scan.plan;
  EXPECT_GT(verdict.values, scan.elements);  // through run() and launch()
}

INSTANTIATE_TEST_SUITE_P(All, GpuSmallScan, testing::Range(std::size_t{0}, std::size(kSmallScans)),
                         [](const auto& info) {
                           const std::string plan = kSmallScans[info.param].plan;
                           const bool blocked = plan.find("blocked=1") != std::string::npos;
                           return fmt::format(
                               "{}_{}{}_{}", info.index, plan.substr(0, plan.find(' ')),
                               blocked ? "_blocked" : "", kSmallScans[info.param].program);
                         });

using SmallFold = std::tuple<const char*, std::int64_t>;

class GpuSmallFold : public testing::TestWithParam<SmallFold> {};

TEST_P(GpuSmallFold, IsRightInOneLaunchAndInTwo) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const auto [name, elements] = GetParam();
  std::vector<std::string> plans = {"", "parts warps=8 depth=4 parts=40 bytes=16 mma"};
  if (target("gpu").cluster_blocks > 1) {
    plans.emplace_back("parts warps=4 depth=2 parts=8 cluster=8 bytes=16 mma");
    plans.emplace_back("parts warps=1 depth=4 parts=3 cluster=3 bytes=8 simt");
  }
  for (const std::string& plan : plans) {
    SCOPED_TRACE(plan);
    const Verdict verdict = check_on_device(
        program(name),
        {.elements = elements, .fill = Fill::uniform, .seed = plans.size(), .plan = plan});
    EXPECT_EQ(verdict.problems, "");
    EXPECT_GT(verdict.values, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuSmallFold,
                         testing::Combine(testing::Values("sum_f16", "variance_f32",
                                                          "longest_run_bool"),
                                          testing::Values(std::int64_t{1}, std::int64_t{40'001})),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

/// Segments of a cluster each, rows with gaps as well, from the host in several chunks of whole
/// segments and where they are.
TEST(GpuClusters, FoldSegments) {
  if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  if (target("gpu").cluster_blocks < 2) GTEST_SKIP() << "no clusters before sm_90";
  constexpr std::int64_t kSegment = 40'003;
  const auto x = chainfold::input<float>("x");
  for (const int blocks : {2, 4, 8}) {
    Options options;
    options.plan = fmt::format("parts warps=4 depth=4 parts={0} cluster={0} bytes=16 simt", blocks);
    const chainfold::Kernel kernel = chainfold::compile(
        chainfold::over(chainfold::segments(kSegment), chainfold::sum(x)), options);
    for (const auto& [gap, count] :
         {std::pair<std::int64_t, std::int64_t>{0, 3}, {5, 3}, {5, 900}}) {
      SCOPED_TRACE(fmt::format("{} blocks, {} segments, gap {}", blocks, count, gap));
      const std::int64_t stride = kSegment + gap;
      std::vector<float> data(static_cast<std::size_t>(count * stride - gap), NAN);
      std::vector<float> sums(static_cast<std::size_t>(count), 0);
      for (std::int64_t s = 0; s < count; ++s) {
        for (std::int64_t i = 0; i < kSegment; ++i) {
          const auto value = static_cast<float>((s * 7 + i * 3 + (i >> 9)) % 61 - 30);
          data[static_cast<std::size_t>(s * stride + i)] = value;
          sums[static_cast<std::size_t>(s)] += value;  // integers of 24 bits
        }
      }
      const auto [sum] =
          kernel.run<float>({chainfold::Binding("x", data).stride(gap > 0 ? stride : 0)});
      EXPECT_EQ(sum, sums);
    }
  }
}

}  // namespace
}  // namespace chainfold::test
