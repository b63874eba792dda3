// More than 2^32 elements in one launch on the CPU: values that repeat themselves, in pages that
// are mapped again and again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/on_cpu.hpp"

namespace chainfold::test {
namespace {

constexpr std::int64_t kBeyond = std::int64_t{1} << 32;

/// `bytes` bytes of memory that repeat themselves after kPeriod.
class Repeated {
 public:
  static constexpr std::int64_t kPeriod = std::int64_t{1} << 20;
  explicit Repeated(std::int64_t bytes, std::uint64_t seed)
      : mapped_(static_cast<std::size_t>((bytes + kPeriod - 1) / kPeriod * kPeriod)) {
    const int file = memfd_create("repeated", 0);
    if (file < 0 || ftruncate(file, kPeriod) != 0) throw std::runtime_error("memfd_create failed");
    void* const all = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("mmap failed");
    memory_ = static_cast<std::uint8_t*>(all);
    for (std::size_t at = 0; at < mapped_; at += kPeriod)
      if (mmap(memory_ + at, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
          MAP_FAILED)
        throw std::runtime_error("mmap failed");
    close(file);
    std::mt19937_64 random(seed);
    for (std::int64_t i = 0; i < kPeriod; ++i)
      memory_[i] = static_cast<std::uint8_t>(random() >> 56);
  }
  ~Repeated() { munmap(memory_, mapped_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  [[nodiscard]] const std::uint8_t* data() const { return memory_; }

 private:
  std::size_t mapped_;
  std::uint8_t* memory_ = nullptr;
};

/// What a period's first elements add up to; and any range of them, repeated.
class Prefixes {
 public:
  template <class F>
  explicit Prefixes(std::int64_t period, F&& value) : upto_(1, 0) {
    upto_.reserve(static_cast<std::size_t>(period) + 1);
    for (std::int64_t i = 0; i < period; ++i) upto_.push_back(upto_.back() + value(i));
  }
  [[nodiscard]] std::int64_t sum(std::int64_t begin, std::int64_t end) const {
    return upto(end) - upto(begin);
  }

 private:
  [[nodiscard]] std::int64_t upto(std::int64_t i) const {
    const std::int64_t period = std::ssize(upto_) - 1;
    return i / period * upto_.back() + upto_[static_cast<std::size_t>(i % period)];
  }
  std::vector<std::int64_t> upto_;
};

TEST(CpuLarge, OffsetsAndBitmapsBeyondTwoToThe32) {
  if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::int64_t kElements = kBeyond + 1037, kFirstBit = 5;
  const Repeated x(kElements, 1), valid((kElements + kFirstBit) / 8 + 1, 2);
  const auto* const values = reinterpret_cast<const std::int8_t*>(x.data());
  constexpr std::int64_t kBits = 8 * Repeated::kPeriod;  // a multiple of the elements' period
  const auto is_valid = [&](std::int64_t i) {
    const std::int64_t at = (i + kFirstBit) % kBits;
    return valid.data()[at / 8] >> (at % 8) & 1;
  };
  const Prefixes all(Repeated::kPeriod, [&](std::int64_t i) { return values[i]; });
  const Prefixes some(
      kBits, [&](std::int64_t i) { return is_valid(i) != 0 ? values[i % Repeated::kPeriod] : 0; });
  const Prefixes counts(kBits, is_valid);

  const std::vector<std::int64_t> offsets{0,           3,           3,           100'003,
                                          kBeyond - 9, kBeyond + 2, kBeyond + 2, kElements - 1};
  const auto in = input<std::int8_t>("x");
  const auto v = input<bool>("v", as_bits);
  const auto kernel =
      compile(over(chainfold::offsets("o"), sum(in), sum(in, where(v)), count(where(v))),
              {.target = target("cpu")});
  const auto [sums, valid_sums, valid_counts] = kernel.run(
      {{"x", values, kElements}, {"v", bits(valid.data(), kElements, kFirstBit)}, {"o", offsets}});
  ASSERT_EQ(sums.size() + 1, offsets.size());
  for (std::size_t s = 0; s < sums.size(); ++s) {
    EXPECT_EQ(sums[s], all.sum(offsets[s], offsets[s + 1])) << s;
    EXPECT_EQ(valid_sums[s], some.sum(offsets[s], offsets[s + 1])) << s;
    EXPECT_EQ(valid_counts[s], counts.sum(offsets[s], offsets[s + 1])) << s;
  }
}

}  // namespace
}  // namespace chainfold::test
