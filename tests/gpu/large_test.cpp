// More than 2^32 elements in one launch, an odd number of them: indices that lose their upper half
// anywhere read or write somewhere else. Each test takes the device's memory for itself.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/device/module.hpp"
#include "chainfold/runtime/jit/nvrtc.hpp"
#include "chainfold/tests/support/on_device.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

constexpr std::int64_t kBeyond = std::int64_t{1} << 32;
/// The input repeats itself after a prime number of bytes, so that what lies 2^31 or 2^32 elements
/// away differs; sums of many elements follow from those of one period.
constexpr std::int64_t kPeriod = 1009;

/// Counts the running sums that are not what they must be. before[p]: the sum of a period's first p
/// elements, total: of all; segment: 0 for the whole.
constexpr const char* kCompare = R"(
static __device__ long long upto(long long i, const long long* before, long long period) {
  return i / period * before[period] + before[i % period];
}
extern "C" __global__ void compare(const int* sums, long long n, long long segment, const long long* before,
                                   long long period, unsigned long long* wrong) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += step) {
    const long long first = segment > 0 ? i / segment * segment : 0;
    const int expected = (int)(upto(i + 1, before, period) - upto(first, before, period));
    if (sums[i] != expected) atomicAdd(wrong, 1ull);
  }
}
)";

class GpuLarge : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    context_ = &runtime::Context::of(0);
  }
  /// Whether the device has so many bytes left.
  [[nodiscard]] bool fits(std::int64_t bytes) const {
    const runtime::ContextScope scope(*context_);
    std::size_t free = 0, total = 0;
    runtime::check(runtime::driver().mem_get_info(&free, &total), "cuMemGetInfo");
    return static_cast<std::int64_t>(free) > bytes + (std::int64_t{1} << 30);
  }

  /// Device memory with `elements` of the periodic input.
  [[nodiscard]] runtime::DeviceBuffer periodic_input(std::int64_t elements) {
    std::mt19937 random(5);
    std::vector<std::int8_t> period(static_cast<std::size_t>(kPeriod));
    for (std::int8_t& x : period) x = static_cast<std::int8_t>(random() % 201 - 100);
    // Sums over all of it stay small: that of a period is 1.
    int sum = std::accumulate(period.begin(), period.end(), 0);
    for (std::size_t i = 0; sum != 1; i = (i + 1) % period.size()) {
      const int step = std::clamp(1 - sum, -10, 10);
      period[i] = static_cast<std::int8_t>(period[i] + step);
      sum += step;
    }
    before_.assign(1, 0);
    for (const std::int8_t x : period) before_.push_back(before_.back() + x);

    constexpr std::int64_t kRepeats = 1024;
    std::vector<std::int8_t> some;
    for (std::int64_t r = 0; r < kRepeats; ++r)
      some.insert(some.end(), period.begin(), period.end());
    runtime::DeviceBuffer input(*context_, static_cast<std::size_t>(elements));
    const auto have = static_cast<std::int64_t>(some.size());
    runtime::copy_to_device(*context_, input.pointer(), some.data(), some.size(), nullptr);
    for (std::int64_t done = have; done < elements; done *= 2) {
      const std::int64_t more = std::min(done, elements - done);
      runtime::copy_on_device(*context_, input.pointer() + static_cast<std::uint64_t>(done),
                              input.pointer(), static_cast<std::size_t>(more), nullptr);
    }
    runtime::synchronize(*context_, nullptr);
    return input;
  }
  /// The sum of the elements [begin, end).
  [[nodiscard]] std::int64_t sum(std::int64_t begin, std::int64_t end) const {
    const auto upto = [&](std::int64_t i) {
      return i / kPeriod * before_.back() + before_[static_cast<std::size_t>(i % kPeriod)];
    };
    return upto(end) - upto(begin);
  }

  [[nodiscard]] Kernel compiled(const Computation& computation, const std::string& plan) const {
    Options options;
    options.target = target("gpu");
    options.plan = plan;
    options.tuning = Tuning::off;
    return cf::compile(computation, options);
  }
  static void expect_plan(const Kernel& kernel, const std::string& plan) {
    if (plan.empty()) return;
    EXPECT_EQ(kernel.plan(), codegen::to_text(codegen::parse_choice(plan)));
  }
  /// Runs a kernel whose only output has values of type T.
  template <class T>
  void launch(const Kernel& kernel, const runtime::DeviceBuffer& input, std::int64_t elements,
              const runtime::DeviceBuffer& output, std::int64_t values,
              const std::optional<Binding>& more = std::nullopt) const {
    LaunchArgs args{.elements = elements,
                    .inputs = {{"x", static_cast<const std::int8_t*>(input.data()), elements}},
                    .outputs = {OutputBinding(static_cast<T*>(output.data()), values)}};
    if (more) args.inputs.push_back(*more);
    const std::int64_t bytes = kernel.scratch_bytes(args);
    const runtime::DeviceBuffer scratch(*context_,
                                        static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
    args.scratch = {scratch.data(), bytes};
    kernel.launch(args);
    runtime::synchronize(*context_, nullptr);
  }

  /// The sums of i8 over segments, columns or (values = 1) everything.
  std::vector<std::int64_t> sums_of(const dsl::Partition& partition, const std::string& plan,
                                    std::int64_t elements, std::int64_t values) {
    const runtime::ContextScope scope(*context_);
    const Kernel kernel = compiled(cf::over(partition, cf::sum(cf::input<std::int8_t>("x"))), plan);
    const runtime::DeviceBuffer input = periodic_input(elements);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(values), -1);
    const std::size_t bytes = sums.size() * sizeof(std::int64_t);
    const runtime::DeviceBuffer output(*context_, bytes);
    launch<std::int64_t>(kernel, input, elements, output, values);
    runtime::copy_to_host(*context_, sums.data(), output.pointer(), bytes, nullptr);
    runtime::synchronize(*context_, nullptr);
    expect_plan(kernel, plan);
    return sums;
  }

  /// Scans i8 to i32, and compares every element on the device.
  void expect_scan(std::int64_t segment, const std::string& plan, std::int64_t elements) {
    if (!fits(elements * 5)) GTEST_SKIP() << "needs " << (elements * 5 >> 30) << " GiB";
    const runtime::ContextScope scope(*context_);
    const auto x = cf::input<std::int8_t>("x");
    const Kernel kernel = compiled(cf::over(segment > 0 ? cf::segments(segment) : cf::whole(),
                                            cf::cast<std::int32_t>(cf::inclusive_sum(x))),
                                   plan);
    const runtime::DeviceBuffer input = periodic_input(elements);
    const runtime::DeviceBuffer output(*context_, static_cast<std::size_t>(elements) * 4);
    runtime::fill_bytes(*context_, output.pointer(), 0xff, output.bytes(), nullptr);
    launch<std::int32_t>(kernel, input, elements, output, elements);
    expect_plan(kernel, plan);

    const std::vector<std::string> names = {"compare"};
    const runtime::CudaModule module(
        *context_, runtime::compile_cubin(kCompare, {.arch = context_->device().arch()}).image,
        names);
    const std::size_t bytes = before_.size() * sizeof(std::int64_t);
    const runtime::DeviceBuffer before(*context_, bytes), wrong(*context_, sizeof(std::uint64_t));
    runtime::copy_to_device(*context_, before.pointer(), before_.data(), bytes, nullptr);
    runtime::fill_bytes(*context_, wrong.pointer(), 0, wrong.bytes(), nullptr);
    const std::uint64_t slots[] = {
        output.pointer(), static_cast<std::uint64_t>(elements), static_cast<std::uint64_t>(segment),
        before.pointer(), static_cast<std::uint64_t>(kPeriod),  wrong.pointer()};
    module.launch(0, {.x = 4096}, 256, 0, nullptr, slots, std::size(slots));
    std::uint64_t found = ~std::uint64_t{0};
    runtime::copy_to_host(*context_, &found, wrong.pointer(), sizeof(found), nullptr);
    runtime::synchronize(*context_, nullptr);
    EXPECT_EQ(found, 0u) << kernel.plan();
  }

  const runtime::Context* context_ = nullptr;
  std::vector<std::int64_t> before_;  // sums of a period's first elements
};

class GpuLargeSegments : public GpuLarge, public testing::WithParamInterface<const char*> {};

TEST_P(GpuLargeSegments, SumsBeyondTwoToThe32) {
  constexpr std::int64_t kSegment = 777, kCount = (kBeyond / kSegment + 2) | 1,
                         kElements = kCount * kSegment;
  static_assert(kElements % 2 == 1 && kElements > kBeyond);
  if (!fits(kElements)) GTEST_SKIP() << "needs " << (kElements >> 30) << " GiB";
  const auto sums = sums_of(cf::segments(kSegment), GetParam(), kElements, kCount);
  for (std::int64_t s = 0; s < kCount; ++s)
    ASSERT_EQ(sums[static_cast<std::size_t>(s)], sum(s * kSegment, (s + 1) * kSegment)) << s;
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuLargeSegments,
    testing::Values("staged warps=8 lanes=32 rows=2 stages=2 burst=64 late=3 blocks=2 bytes=16 mma",
                    "rows warps=8 depth=1 rows=1 bytes=16 mma",
                    "parts warps=8 depth=1 parts=264 bytes=16 simt"),
    [](const auto& info) {
      const std::string plan = info.param;
      return plan.substr(0, plan.find(' '));
    });

TEST_F(GpuLarge, SumOfMoreThanTwoToThe32) {
  constexpr std::int64_t kElements = kBeyond + 1037;
  if (!fits(kElements)) GTEST_SKIP() << "needs " << (kElements >> 30) << " GiB";
  const auto sums = sums_of(cf::whole(), "", kElements, 1);  // first: sum() follows from its input
  EXPECT_EQ(sums[0], sum(0, kElements));
}

/// A giant of more than 2^32 elements among tiny ones, behind which others begin beyond 2^32.
TEST_F(GpuLarge, OffsetsBeyondTwoToThe32) {
  constexpr std::int64_t kTiny = 100'001, kElements = kBeyond + 2 * kTiny * 3 + 1037;
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 0; i < kTiny; ++i) offsets.push_back(offsets.back() + i % 4);
  offsets.push_back(offsets.back() + kBeyond + 5);
  for (std::int64_t i = 0; i < kTiny; ++i) offsets.push_back(offsets.back() + i % 4);
  ASSERT_LE(offsets.back(), kElements);
  if (!fits(kElements)) GTEST_SKIP() << "needs " << (kElements >> 30) << " GiB";
  const runtime::ContextScope scope(*context_);
  const Kernel kernel =
      compiled(cf::over(cf::offsets("o"), cf::sum(cf::input<std::int8_t>("x"))), "");
  const runtime::DeviceBuffer input = periodic_input(kElements);
  const std::size_t bytes = offsets.size() * sizeof(std::int64_t);
  const runtime::DeviceBuffer told(*context_, bytes), output(*context_, bytes);
  runtime::copy_to_device(*context_, told.pointer(), offsets.data(), bytes, nullptr);
  const auto segments = static_cast<std::int64_t>(offsets.size()) - 1;
  launch<std::int64_t>(kernel, input, kElements, output, segments,
                       Binding("o", static_cast<const std::int64_t*>(told.data()), segments + 1));
  std::vector<std::int64_t> sums(static_cast<std::size_t>(segments), -1);
  runtime::copy_to_host(*context_, sums.data(), output.pointer(), sums.size() * sizeof sums[0],
                        nullptr);
  runtime::synchronize(*context_, nullptr);
  for (std::size_t s = 0; s < sums.size(); ++s)
    ASSERT_EQ(sums[s], sum(offsets[s], offsets[s + 1])) << s;
}

TEST_F(GpuLarge, ColumnsOfMoreThanTwoToThe32) {
  constexpr std::int64_t kColumns = 4099;
  constexpr std::int64_t kRows = (kBeyond / kColumns + 2) | 1;  // an odd number
  static_assert(kColumns * kRows > kBeyond);
  if (!fits(kColumns * kRows)) GTEST_SKIP() << "needs " << (kColumns * kRows >> 30) << " GiB";
  const auto sums = sums_of(cf::columns(kColumns), "", kColumns * kRows, kColumns);
  for (std::int64_t c = 0; c < kColumns; ++c) {
    // Down a column the input repeats itself after as many rows as a period has elements.
    std::int64_t expected = kRows / kPeriod * before_.back();
    for (std::int64_t r = 0; r < kRows % kPeriod; ++r)
      expected += sum(r * kColumns + c, r * kColumns + c + 1);
    ASSERT_EQ(sums[static_cast<std::size_t>(c)], expected) << c;
  }
}

struct ScanCase {
  const char* name;
  std::int64_t segment;
  const char* plan;
};
const ScanCase kScans[] = {
    {"look_back", 0, "look_back warps=16 depth=8 tile=0 blocks=2 bytes=16 simt"},
    {"look_back_mma", 0, "look_back warps=8 depth=4 tile=0 blocks=2 bytes=16 mma"},
    {"propagate", 0, "propagate warps=16 depth=8 tile=0 blocks=2 bytes=16 simt"},
    {"segments", 777, ""},
    {"long_segments", 100'003, "look_back warps=8 depth=4 tile=0 blocks=2 bytes=16 simt"},
    {"segments_in_turn", 100'003,
     "look_back warps=8 depth=4 staged=2 across=64 tile=0 blocks=2 bytes=16 simt"},
    {"tiles_of_all_segments", 100'003,
     "look_back warps=8 depth=4 staged=2 heads=1 tile=0 blocks=2 bytes=16 simt"},
};

class GpuLargeScans : public GpuLarge, public testing::WithParamInterface<std::size_t> {};

TEST_P(GpuLargeScans, GoBeyondTwoToThe32) {
  const ScanCase& scan = kScans[GetParam()];
  const std::int64_t unit = scan.segment > 0 ? scan.segment : 1037;
  const std::int64_t elements = ((kBeyond / unit + 2) | 1) * unit;
  ASSERT_TRUE(elements % 2 == 1 && elements > kBeyond);
  expect_scan(scan.segment, scan.plan, elements);
}

INSTANTIATE_TEST_SUITE_P(All, GpuLargeScans, testing::Range(std::size_t{0}, std::size(kScans)),
                         [](const auto& info) { return std::string(kScans[info.param].name); });

}  // namespace
}  // namespace chainfold::test
