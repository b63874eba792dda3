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

CpuCeilings::CpuCeilings(std::int64_t bytes) : data_(bytes), target_(bytes) {
  for (std::int64_t i = 0; i < words(); ++i)
    data_.as<std::uint64_t>()[i] = static_cast<std::uint64_t>(i) * kStep;
  copy();
  if (std::memcmp(data_.as<char>(), target_.as<char>(), static_cast<std::size_t>(bytes)) != 0) {
    throw std::runtime_error("the ceiling is no ceiling: the copy differs from its source");
  }
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
  const std::uint64_t sum = (n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n) * kStep;
  if (result.words != n || result.sum != sum) {
    throw std::runtime_error("the ceiling is no ceiling: the read loop missed words");
  }
}

void CpuCeilings::copy() const { openmp::copy(data_.as<char>(), target_.as<char>(), bytes()); }

void CpuCeilings::wash() const {
  openmp::read(target_.as<std::uint64_t>(), words(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

Ceilings CpuCeilings::measure(std::size_t repeats) const {
  const auto times = time_rounds({[&] { read(); }, [&] { copy(); }}, repeats, [&] { wash(); });
  return {bytes(), median(times[0]), median(times[1])};
}

}  // namespace chainfold::bench
