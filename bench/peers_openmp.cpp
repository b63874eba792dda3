#include "chainfold/bench/peers_openmp.hpp"

#include <omp.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace chainfold::bench::openmp {

void set_threads(int threads) { omp_set_num_threads(threads); }

void sum_f32(const float* in, std::int64_t segments, std::int64_t length, float* out) {
#pragma omp parallel for schedule(static)
  for (std::int64_t s = 0; s < segments; ++s) {
    float sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += in[s * length + i];
    out[s] = sum;
  }
}

void sum_f32_simd(const float* in, std::int64_t segments, std::int64_t length, float* out) {
#pragma omp parallel for schedule(static)
  for (std::int64_t s = 0; s < segments; ++s) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < length; ++i) sum += in[s * length + i];
    out[s] = sum;
  }
}

#if defined(__FLT16_MAX__)
bool has_f16() { return true; }

__extension__ using Half = _Float16;

void sum_f16(const void* in, std::int64_t segments, std::int64_t length, float* out) {
  const Half* values = static_cast<const Half*>(in);
#pragma omp parallel for schedule(static)
  for (std::int64_t s = 0; s < segments; ++s) {
    float sum = 0;
    for (std::int64_t i = 0; i < length; ++i) sum += static_cast<float>(values[s * length + i]);
    out[s] = sum;
  }
}

void sum_f16_simd(const void* in, std::int64_t segments, std::int64_t length, float* out) {
  const Half* values = static_cast<const Half*>(in);
#pragma omp parallel for schedule(static)
  for (std::int64_t s = 0; s < segments; ++s) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < length; ++i) sum += static_cast<float>(values[s * length + i]);
    out[s] = sum;
  }
}
#else
bool has_f16() { return false; }
void sum_f16(const void*, std::int64_t, std::int64_t, float*) {}
void sum_f16_simd(const void*, std::int64_t, std::int64_t, float*) {}
#endif

float sum_all_f32(const float* in, std::int64_t n) {
  float sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += in[i];
  return sum;
}

std::int64_t q6(const std::int32_t* ship, const std::int64_t* disc, const std::int64_t* qty,
                const std::int64_t* price, std::int64_t n) {
  std::int64_t sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) {
    // Without branches, which is the faster form here: the hits are too many to predict.
    const bool hit =
        (ship[i] >= 8766) & (ship[i] < 9131) & (disc[i] >= 5) & (disc[i] <= 7) & (qty[i] < 2400);
    sum += hit ? price[i] * disc[i] : 0;
  }
  return sum;
}

namespace {

constexpr std::int64_t kBlock = 64;  // words that one stream reads before the next one's turn

template <int Streams>
ReadResult read_streams(const std::uint64_t* in, std::int64_t words) {
  std::uint64_t sum = 0, count = 0;
  const std::int64_t length = words / Streams / kBlock;  // blocks a stream
#pragma omp parallel for schedule(static) reduction(+ : sum, count)
  for (std::int64_t block = 0; block < length; ++block) {
    for (int k = 0; k < Streams; ++k) {
      const std::uint64_t* from = in + (k * length + block) * kBlock;
      std::uint64_t part = 0;
      for (std::int64_t i = 0; i < kBlock; ++i) part += from[i];
      sum += part;
      count += kBlock;
    }
  }
  for (std::int64_t i = length * Streams * kBlock; i < words; ++i) {
    sum += in[i];
    ++count;
  }
  return {sum, count};
}

}  // namespace

ReadResult read(const std::uint64_t* in, std::int64_t words, int streams) {
  switch (streams) {
    case 8: return read_streams<8>(in, words);
    case 4: return read_streams<4>(in, words);
    case 2: return read_streams<2>(in, words);
    default: return read_streams<1>(in, words);
  }
}

namespace {

/// Of whole lines, `out` on a boundary of 16 bytes.
void copy_lines(const char* in, char* out, std::int64_t bytes, bool past_caches) {
#if defined(__SSE2__)
  if (past_caches) {
    for (std::int64_t at = 0; at < bytes; at += 64) {
      for (int i = 0; i < 64; i += 16) {
        const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at + i));
        _mm_stream_si128(reinterpret_cast<__m128i*>(out + at + i), word);
      }
    }
    _mm_sfence();
    return;
  }
#endif
  static_cast<void>(past_caches);
  memcpy(out, in, static_cast<std::size_t>(bytes));
}

}  // namespace

void copy(const void* in, void* out, std::int64_t bytes, bool past_caches) {
  const auto* const from = static_cast<const char*>(in);
  auto* const to = static_cast<char*>(out);
  const std::int64_t lines = bytes / 64;
#pragma omp parallel
  {
    const std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const std::int64_t begin = lines * me / threads * 64, end = lines * (me + 1) / threads * 64;
    copy_lines(from + begin, to + begin, end - begin, past_caches);
  }
  memcpy(to + lines * 64, from + lines * 64, static_cast<std::size_t>(bytes % 64));
}

void copy_again(const void* in, void* out, std::int64_t bytes, std::int64_t times) {
#pragma omp parallel
  {
    const std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    // Whole cache lines a thread.
    const std::int64_t lines = bytes / 64, begin = lines * me / threads * 64;
    const std::int64_t end = me + 1 == threads ? bytes : lines * (me + 1) / threads * 64;
    for (std::int64_t t = 0; t < times; ++t) {
      memcpy(static_cast<char*>(out) + begin, static_cast<const char*>(in) + begin,
             static_cast<std::size_t>(end - begin));
      asm volatile("" : : : "memory");  // each copy is made
    }
  }
}

ReadResult read_again(const std::uint64_t* in, std::int64_t words, std::int64_t times) {
  std::uint64_t sum = 0, count = 0;
#pragma omp parallel reduction(+ : sum, count)
  {
    const std::int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const std::int64_t begin = words * me / threads, end = words * (me + 1) / threads;
    for (std::int64_t t = 0; t < times; ++t) {
      std::uint64_t part = 0;
      for (std::int64_t i = begin; i < end; ++i) part += in[i];
      sum += part;
      count += static_cast<std::uint64_t>(end - begin);
      asm volatile("" : : : "memory");  // the words are read once more
    }
  }
  return {sum, count};
}

}  // namespace chainfold::bench::openmp
