// Partial states through the public interface, on the CPU: batches, threads, files.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "chainfold/tests/support/cpu_test.hpp"

namespace chainfold::test {
namespace {

class StatesOfBatches : public CpuTest {
 protected:
  [[nodiscard]] States states_of(const Computation& computation) const {
    return States(computation, Options{.target = target("cpu"), .tuning = Tuning::off});
  }
  /// Memory of so many states, of nothing.
  static std::vector<std::uint64_t> memory(const States& states, std::int64_t count = 1) {
    std::vector<std::uint64_t> words(static_cast<std::size_t>(count * states.bytes()) / 8,
                                     0xA5A5A5A5A5A5A5A5);
    states.init(words.data(), count);
    return words;
  }
  decltype(input<std::int32_t>("x")) x_ = input<std::int32_t>("x");
};

std::vector<std::int32_t> numbers(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> all(count);
  for (std::int32_t& x : all) x = static_cast<std::int32_t>(random() % 2001) - 1000;
  return all;
}

/// Two threads take every other batch; their states are merged, and those of a thread of its own
/// are read from serialised bytes.
TEST_F(StatesOfBatches, OfTwoThreadsAreThoseOfAll) {
  const Computation computation(over(whole(), sum(x_), mean(x_), variance(x_), max(x_), count()));
  const States states = states_of(computation);
  const auto x = numbers(100'003, 7);
  constexpr std::size_t kBatch = 2048;
  std::vector<std::byte> files[2];
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      auto own = memory(states);
      for (std::size_t at = t * kBatch; at < x.size(); at += 2 * kBatch)
        states.update(own.data(),
                      {{"x", std::span(x).subspan(at, std::min(kBatch, x.size() - at))}});
      files[t] = states.serialise(own.data());
    });
  for (std::thread& thread : threads) thread.join();
  auto all = memory(states);
  for (const auto& file : files) {
    auto read = memory(states);
    ASSERT_EQ(states.count_of(file), 1);
    states.deserialise(file, read.data(), 1);
    states.merge(all.data(), read.data());
  }
  EXPECT_EQ(states.rows(all.data()), static_cast<std::int64_t>(x.size()));
  const auto [sum, mean, variance, max, count] =
      states.finalize<std::int64_t, double, double, std::int32_t, std::int64_t>(all.data());
  const Kernel kernel = compiled(computation);
  const auto [sum1, mean1, variance1, max1, count1] =
      kernel.run<std::int64_t, double, double, std::int32_t, std::int64_t>({{"x", x}});
  EXPECT_EQ(sum[0], sum1[0]);
  EXPECT_EQ(mean[0], mean1[0]);
  EXPECT_NEAR(variance[0], variance1[0], variance1[0] * 0x1p-45);
  EXPECT_EQ(max[0], max1[0]);
  EXPECT_EQ(count[0], count1[0]);
}

/// An index goes on from batch to batch, and a state merged with itself has every row twice.
TEST_F(StatesOfBatches, CountRowsOn) {
  const States states = states_of(Computation(over(whole(), argmax(x_), sum(x_), argmin(x_))));
  auto x = numbers(10'000, 3);
  x[7777] = 5000;
  x[8888] = -5000;
  auto state = memory(states);
  for (std::size_t at = 0; at < x.size(); at += 1000)
    states.update(state.data(), {{"x", std::span(x).subspan(at, 1000)}});
  const auto [best, total, least] =
      states.finalize<std::int64_t, std::int64_t, std::int64_t>(state.data());
  EXPECT_EQ(best[0], 7777);
  EXPECT_EQ(least[0], 8888);
  states.merge(state.data(), state.data());
  const auto [again, twice, last] =
      states.finalize<std::int64_t, std::int64_t, std::int64_t>(state.data());
  EXPECT_EQ(again[0], 7777);
  EXPECT_EQ(twice[0], 2 * total[0]);
  EXPECT_EQ(states.rows(state.data()), 20'000);
}

/// States of segments, and arrays of them merged at once, are those of the elements side by side.
TEST_F(StatesOfBatches, OfSegmentsMergeOneByOne) {
  constexpr std::int64_t kSegments = 300, kLength = 7;
  const auto a = numbers(kSegments * kLength, 1), b = numbers(kSegments * kLength, 2);
  const States states =
      states_of(Computation(over(segments(kLength), sum(x_), min(x_), argmax(x_))));
  auto first = memory(states, kSegments), second = memory(states, kSegments);
  ASSERT_EQ(states.fold(first.data(), kSegments, {{"x", a}}), kSegments);
  ASSERT_EQ(states.fold(second.data(), kSegments, {{"x", b}}), kSegments);
  states.merge(first.data(), second.data(), kSegments);
  const auto [sums, minima, places] =
      states.finalize<std::int64_t, std::int32_t, std::int64_t>(first.data(), kSegments);
  for (std::int64_t s = 0; s < kSegments; ++s) {
    std::vector<std::int32_t> both;
    for (const auto* from : {&a, &b})
      both.insert(both.end(), from->begin() + s * kLength, from->begin() + (s + 1) * kLength);
    std::int64_t sum = 0;
    for (const std::int32_t value : both) sum += value;
    const auto at = static_cast<std::size_t>(s);
    EXPECT_EQ(sums[at], sum);
    EXPECT_EQ(minima[at], *std::ranges::min_element(both));
    EXPECT_EQ(places[at], std::ranges::max_element(both) - both.begin());
  }
  std::vector<std::uint64_t> small(first.size() - 1, 1);
  const auto before = small;
  EXPECT_THROW(states.fold(small.data(), kSegments - 1, {{"x", a}}), UserError);
  EXPECT_EQ(small, before);
}

/// Of heads the data tell how many states there are; parameters of outputs are bound when a state
/// is finished.
TEST_F(StatesOfBatches, OfSegmentsThatDataTell) {
  const auto limit = param<double>("limit");
  const States states = states_of(
      Computation(over(heads(x_ > 900), select(mean(x_) > limit, mean(x_), limit), count())));
  const auto x = numbers(5000, 9);
  std::vector<std::pair<double, std::int64_t>> expected;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i == 0 || x[i] > 900) expected.emplace_back(0, 0);
    expected.back().first += x[i];
    ++expected.back().second;
  }
  auto all = memory(states, static_cast<std::int64_t>(x.size()));
  const std::int64_t count =
      states.fold(all.data(), static_cast<std::int64_t>(x.size()), {{"x", x}});
  ASSERT_EQ(count, static_cast<std::int64_t>(expected.size()));
  EXPECT_EQ(states.fold(nullptr, 0, {{"x", std::vector<std::int32_t>()}}), 0);
  const auto [means, counts] =
      states.finalize<double, std::int64_t>(all.data(), count, {{"limit", 10.0}});
  for (std::size_t s = 0; s < expected.size(); ++s) {
    const auto [sum, length] = expected[s];
    EXPECT_EQ(counts[s], length);
    EXPECT_EQ(means[s], std::max(10.0, sum / static_cast<double>(length)));
  }
}

}  // namespace
}  // namespace chainfold::test
