#include "chainfold/bench/cpu_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "chainfold/bench/peers_openmp.hpp"

namespace chainfold::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kPage = 1 << 21;
constexpr int kStreams[] = {1, 2, 4, 8};
constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ull;
/// Less is over before threads that sleep are awake: what it takes to wake them would be a ceiling.
constexpr std::int64_t kLeastCeiling = 64 << 20;
constexpr auto kThreadsSleep = std::chrono::milliseconds(2);  // every pool's, after so long

/// What the first words of the ceilings' data add up to.
std::uint64_t sum_of_words(std::uint64_t n) {
  return (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) * kStep;
}

template <class T>
T element(Source source, std::uint64_t i) {
  const std::int64_t k = value_of(source, i);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(k);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::ldexp(static_cast<double>(k), -scale_of(source));
  } else {
    return T(static_cast<float>(k) / static_cast<float>(1 << scale_of(source)));
  }
}

template <class T>
void fill(Source source, T* out, std::int64_t count) {
  const std::int64_t workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([=] {
      for (std::int64_t i = count * w / workers; i < count * (w + 1) / workers; ++i)
        out[i] = element<T>(source, static_cast<std::uint64_t>(i));
    });
  }
}

}  // namespace

Buffer::Buffer(std::int64_t bytes)
    : bytes_(bytes),
      data_(std::aligned_alloc(kPage, static_cast<std::size_t>((bytes + kPage) / kPage * kPage)),
            &std::free) {
  if (!data_)
    throw std::runtime_error(fmt::format("no memory for {} bytes; try --elements", bytes));
  ::madvise(data_.get(), static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // a wish
  std::memset(data_.get(), 0xff, static_cast<std::size_t>(bytes));
}

Buffer make_input(const Case::Input& input, std::int64_t count) {
  Buffer buffer(count * size_of(input.type));
  switch (input.type) {
    case DType::f16: fill(input.source, buffer.as<f16>(), count); break;
    case DType::bf16: fill(input.source, buffer.as<bf16>(), count); break;
    case DType::f32: fill(input.source, buffer.as<float>(), count); break;
    case DType::f64: fill(input.source, buffer.as<double>(), count); break;
    case DType::i8: fill(input.source, buffer.as<std::int8_t>(), count); break;
    case DType::i32: fill(input.source, buffer.as<std::int32_t>(), count); break;
    case DType::i64: fill(input.source, buffer.as<std::int64_t>(), count); break;
    default: throw std::logic_error("an input type that the CPU's suites do not have");
  }
  return buffer;
}

std::vector<std::vector<double>> time_rounds(const std::vector<std::function<void()>>& round,
                                             std::size_t repeats,
                                             const std::function<void()>& wash) {
  std::vector<std::vector<double>> times(round.size());
  for (std::size_t r = 0; r < repeats; ++r) {
    for (std::size_t i = 0; i < round.size(); ++i) {
      wash();
      const auto start = Clock::now();
      round[i]();
      times[i].push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    }
  }
  return times;
}

std::vector<std::vector<double>> time_batches(const std::vector<std::function<void()>>& round,
                                              double seconds) {
  constexpr double kBatch = 1;         // milliseconds
  constexpr std::int64_t kWarmUp = 4;  // batches, in which even a virtual machine's threads wake up
  const auto batch = [](const std::function<void()>& run, std::int64_t calls) {
    const auto start = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) run();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  std::vector<std::int64_t> calls;
  for (const auto& run : round) {
    batch(run, 2);
    const double once = batch(run, 8) / 8;
    calls.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(kBatch / once)));
  }
  const auto repeats = static_cast<std::size_t>(std::clamp(seconds * 1e3 / kBatch, 5.0, 50.0));
  std::vector<std::vector<double>> times(round.size());
  for (std::size_t r = 0; r < repeats; ++r) {
    for (std::size_t i = 0; i < round.size(); ++i) {
      std::this_thread::sleep_for(kThreadsSleep);
      batch(round[i], kWarmUp * calls[i]);
      times[i].push_back(batch(round[i], calls[i]) / static_cast<double>(calls[i]));
    }
  }
  return times;
}

CpuCeilings::CpuCeilings(std::int64_t least)
    : data_(std::max(least / 8 * 8, kLeastCeiling)), target_(data_.bytes()) {
  const auto size = static_cast<std::size_t>(bytes());
  for (std::int64_t i = 0; i < words(); ++i)
    data_.as<std::uint64_t>()[i] = static_cast<std::uint64_t>(i) * kStep;
  for (const bool past_caches : {false, true}) {
    std::memset(target_.as<char>(), 0x5a, size);
    copy(past_caches);
    if (std::memcmp(data_.as<char>(), target_.as<char>(), size) != 0)
      throw std::runtime_error("the ceiling is no ceiling: the copy differs from its source");
  }
  const auto copies =
      time_rounds({[this] { copy(false); }, [this] { copy(true); }}, 7, [this] { wash(); });
  past_caches_ = median(copies[1]) < median(copies[0]);
  std::vector<std::function<void()>> round;
  for (const int streams : kStreams) round.push_back([this, streams] { read(streams); });
  const auto times = time_rounds(round, 7, [this] { wash(); });
  std::size_t best = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (median(times[i]) < median(times[best])) best = i;
  streams_ = kStreams[best];
}

void CpuCeilings::read(int streams) const {
  const openmp::ReadResult result = openmp::read(data_.as<std::uint64_t>(), words(), streams);
  const auto n = static_cast<std::uint64_t>(words());
  if (result.words != n || result.sum != sum_of_words(n)) {
    throw std::runtime_error("the ceiling is no ceiling: the read loop missed words");
  }
}

void CpuCeilings::copy() const { copy(past_caches_); }

void CpuCeilings::copy(bool past_caches) const {
  openmp::copy(data_.as<char>(), target_.as<char>(), bytes(), past_caches);
}

void CpuCeilings::wash() const {
  openmp::read(target_.as<std::uint64_t>(), words(), 1);
  std::this_thread::sleep_for(kThreadsSleep);
}

Ceilings CpuCeilings::measure(std::size_t repeats) const {
  const auto times = time_rounds({[&] { read(); }, [&] { copy(); }}, repeats, [&] { wash(); });
  return {bytes(), median(times[0]), median(times[1])};
}

Ceilings CpuCeilings::measure_cached(std::int64_t bytes, std::size_t repeats) const {
  constexpr std::int64_t kPerTiming = std::int64_t{64} << 20;
  bytes = std::min(bytes, this->bytes()) / 128 * 128;
  const std::int64_t again = std::max<std::int64_t>(2, kPerTiming / bytes);
  const auto n = static_cast<std::uint64_t>(bytes / 8);
  const auto read = [&] {
    const auto result = openmp::read_again(data_.as<std::uint64_t>(), bytes / 8, again);
    const auto times = static_cast<std::uint64_t>(again);
    if (result.words != n * times || result.sum != sum_of_words(n) * times)
      throw std::runtime_error("the ceiling is no ceiling: the loop in cache missed words");
  };
  // Source and target share the caches: half of the bytes each, twice as often.
  const auto copy = [&] {
    openmp::copy_again(data_.as<char>(), target_.as<char>(), bytes / 2, 2 * again);
  };
  const auto times = time_rounds({read, copy}, repeats, [&] {
    read();
    std::this_thread::sleep_for(kThreadsSleep);
  });
  return {bytes * again, median(times[0]), median(times[1])};
}

}  // namespace chainfold::bench
