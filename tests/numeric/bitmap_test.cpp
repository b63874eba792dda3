// Bitmaps on the CPU: any bit offset and length at the very end and the very beginning of memory,
// what is bound to them, and what is refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

class Bitmap : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
    options_.target = target("cpu");
  }
  Options options_;
};

/// Bytes of random bits, and what bit i is.
struct RandomBits {
  explicit RandomBits(std::int64_t bytes, std::uint64_t seed) : all(DType::u8, bytes) {
    std::mt19937_64 random(seed);
    for (std::int64_t i = 0; i < bytes; ++i) all.set(i, random() & 0xff);
  }
  [[nodiscard]] bool at(std::int64_t i) const { return (all.get(i / 8) >> (i % 8) & 1) != 0; }
  [[nodiscard]] const std::uint8_t* data() const {
    return static_cast<const std::uint8_t*>(static_cast<const void*>(all.data()));
  }
  GuardedArray all;
};

/// Memory ends with the bits' last byte, behind which a page is that nobody may touch.
TEST_F(Bitmap, AnyBitOffsetAndLengthAtTheEndOfMemory) {
  const auto v = input<bool>("v", as_bits);
  const auto x = input<float>("x");
  std::optional<TypedKernel<float, std::int64_t, bool>> whole;
  for (std::int64_t n = 0; n < 300; n += n < 70 ? 1 : 23) {
    for (std::int64_t first = 0; first < 20; first += n % 3 == 0 ? 1 : 3) {
      const RandomBits bits_there((first + n + 7) / 8, static_cast<std::uint64_t>(n + 7 * first));
      const GuardedArray values(DType::f32, n);
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto value = static_cast<float>(i % 13) - 5;
        values.set(i, codegen::bits_of(value));
        if (!bits_there.at(first + i)) continue;
        sum += static_cast<double>(value);
        ++count;
      }
      if (!whole)
        whole = compile(over(chainfold::whole(), chainfold::sum(x, where(v)),
                             chainfold::count(where(v)), all(v)),
                        options_);
      const auto* const floats = static_cast<const float*>(static_cast<const void*>(values.data()));
      const std::span<const float> data(floats, static_cast<std::size_t>(n));
      const auto [sums, counts, alls] =
          whole->run({{"x", data}, {"v", bits(bits_there.data(), n, first)}});
      ASSERT_EQ(sums[0], static_cast<float>(sum)) << n << " from bit " << first;
      ASSERT_EQ(counts[0], count) << n << " from bit " << first;
      ASSERT_EQ(alls[0] != 0, count == n) << n << " from bit " << first;
    }
  }
}

/// Scans store what a bitmap says of each element; ranks of set bits among them.
TEST_F(Bitmap, RanksOfSetBits) {
  const auto v = input<bool>("v", as_bits);
  for (const std::int64_t segment : {0, 5, 8, 64, 100}) {
    const auto kernel =
        compile(over(segment == 0 ? whole() : segments(segment, Tail::partial),
                     exclusive(count(where(v))), inclusive(count(where(!v)), backward)),
                options_);
    for (const std::int64_t n : {0, 1, 37, 4099, 70001}) {
      for (const std::int64_t first : {0, 3, 63}) {
        const RandomBits there((first + n + 7) / 8, static_cast<std::uint64_t>(n + first));
        const auto [ranks, zeros] = kernel.run({{"v", bits(there.data(), n, first)}});
        ASSERT_EQ(std::ssize(ranks), n);
        std::int64_t rank = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          if (segment > 0 && i % segment == 0) rank = 0;
          ASSERT_EQ(ranks[static_cast<std::size_t>(i)], rank) << i << " of " << n;
          rank += there.at(first + i) ? 1 : 0;
        }
        std::int64_t behind = 0;
        for (std::int64_t i = n - 1; i >= 0; --i) {
          if (segment > 0 && i % segment == segment - 1) behind = 0;
          behind += there.at(first + i) ? 0 : 1;
          ASSERT_EQ(zeros[static_cast<std::size_t>(i)], behind) << i << " of " << n;
        }
      }
    }
  }
}

/// Rows of stores past the caches begin with lines of memory, and so before the first element.
TEST_F(Bitmap, LongScansOffALine) {
  constexpr std::int64_t kElements = 10'000'000, kSegment = 100;
  const auto kernel = compile(
      over(segments(kSegment), inclusive_sum(input<float>("x"), where(input<bool>("v", as_bits)))),
      options_);
  std::vector<float> x(kElements);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  const RandomBits there(kElements / 8 + 1, 5);
  const auto [sums] = kernel.run({{"x", x}, {"v", bits(there.data(), kElements, 3)}});
  float sum = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (i % kSegment == 0) sum = 0;
    if (there.at(static_cast<std::int64_t>(i) + 3)) sum += x[i];
    ASSERT_EQ(sums[i], sum) << i;
  }
}

TEST_F(Bitmap, HeadsWhereABitIsNotThatBefore) {
  const auto v = input<bool>("v", as_bits);
  const auto kernel = compile(over(heads(v != lag(v, 1, false)), count()), options_);
  for (const std::int64_t first : {0, 1, 7}) {
    const std::int64_t n = 1000;
    const RandomBits there((first + n + 7) / 8, static_cast<std::uint64_t>(first));
    std::vector<std::int64_t> runs;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == 0 || there.at(first + i) != there.at(first + i - 1)) runs.push_back(0);
      ++runs.back();
    }
    EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(there.data(), n, first)}})), runs) << first;
  }
}

TEST_F(Bitmap, AloneTellsHowManyElementsThereAre) {
  const auto kernel = compile(over(whole(), count(where(input<bool>("v", as_bits)))), options_);
  const std::vector<std::uint8_t> bytes{0xff, 0x0f};
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(bytes)}}))[0], 12);
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(bytes, 9)}}))[0], 9);
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(bytes, 5, 9)}}))[0], 3);
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(bytes, -1, 10)}}))[0], 2);
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(std::span<const std::uint8_t>())}}))[0], 0);
  static constexpr std::uint8_t kConstant[2] = {0xff, 0xff};
  EXPECT_EQ(std::get<0>(kernel.run({{"v", bits(kConstant)}}))[0], 16);
}

TEST_F(Bitmap, HeadsAndOffsetsReadThem) {
  const auto v = input<bool>("v", as_bits);
  const auto x = input<std::int32_t>("x");
  const std::vector<std::int32_t> data{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const std::vector<std::uint8_t> bytes{0b01001000, 0b00000010};  // bits 3, 6 and 9
  const auto by_heads = compile(over(heads(v), sum(x)), options_);
  EXPECT_EQ(std::get<0>(by_heads.run({{"x", data}, {"v", bits(bytes, 11)}})),
            (std::vector<std::int64_t>{6, 15, 24, 21}));
  EXPECT_EQ(std::get<0>(by_heads.run({{"x", data}, {"v", bits(bytes, 11, 2)}})),
            (std::vector<std::int64_t>{1, 9, 18, 38}));
  const auto by_offsets = compile(over(offsets("o"), sum(x, where(v)), count(where(v))), options_);
  const std::vector<std::int64_t> starts{0, 4, 4, 11};
  const auto [sums, counts] = by_offsets.run({{"x", data}, {"v", bits(bytes, 11)}, {"o", starts}});
  EXPECT_EQ(sums, (std::vector<std::int64_t>{4, 0, 17}));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{1, 0, 2}));
}

TEST_F(Bitmap, RefusesWhatIsBoundWrong) {
  const auto v = input<bool>("v", as_bits);
  const auto kernel = compile(over(segments(4), sum(input<float>("x"), where(v))), options_);
  const std::vector<float> x(12);
  const std::vector<std::uint8_t> bytes(2), one(1);
  const auto refused = [&](const Binding& binding, ErrorCode code,
                           const std::vector<std::string>& words) {
    expect_error<UserError>([&] { (void)kernel.run({{"x", x}, binding}); }, code, "v", words);
  };
  EXPECT_EQ(std::ssize(std::get<0>(kernel.run({{"x", x}, {"v", bits(bytes)}}))), 3);
  refused({"v", bits(one)}, ErrorCode::length_mismatch, {"'v' of 1 bytes has 8 bits", "12"});
  refused({"v", bits(bytes, 17)}, ErrorCode::length_mismatch, {"16 bits", "17"});
  refused({"v", bits(bytes, 12, 5)}, ErrorCode::length_mismatch, {"11 bits", "from bit 5", "12"});
  refused({"v", bits(bytes, -1, 5)}, ErrorCode::length_mismatch, {"11 bits", "12 are needed"});
  refused({"v", bits(bytes, 8)}, ErrorCode::length_mismatch, {"'v' has 8 elements", "'x' has 12"});
  refused({"v", bits(bytes, 8, -1)}, ErrorCode::invalid_argument, {"begins at bit -1"});
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  refused({"v", bits(bytes, 12, kLeast)}, ErrorCode::invalid_argument, {"begins at bit"});
  refused({"v", bits(bytes.data(), 12, -(kLeast + 1))}, ErrorCode::invalid_argument, {"2^63"});
  refused({"v", bits(bytes, -7)}, ErrorCode::invalid_argument, {"-7 bits"});
  refused({"v", bits(static_cast<const std::uint8_t*>(nullptr), 12)}, ErrorCode::null_pointer,
          {"null"});
  refused({"v", bytes}, ErrorCode::type_mismatch, {"cf::as_bits", "cf::bits"});
  refused(Binding("v", bits(bytes)).stride(8), ErrorCode::invalid_argument, {"stride"});
  expect_error<UserError>([&] { (void)kernel.run({{"x", bits(bytes, 12)}, {"v", bits(bytes)}}); },
                          ErrorCode::type_mismatch, "x", {"declared as float", "bits"});
  const auto alone = compile(over(whole(), any(v)), options_);
  expect_error<UserError>([&] { (void)alone.run({{"v", bits(bytes.data())}}); },
                          ErrorCode::invalid_argument, "v", {"how many elements"});
  expect_error<UserError>([&] { (void)over(whole(), any(v), any(input<bool>("v"))); },
                          ErrorCode::duplicate_input, "v", {"cf::as_bits"});
}

}  // namespace
}  // namespace chainfold::test
