// Random signed data that a device writes for itself and the host can recompute, element by
// element.
//
// Every value is an integer k times 2^-kScale, so sums, sums of squares and products of it are
// exact integers on the host. The functions below are compiled by the host's compiler and, as text,
// by NVRTC.
#pragma once

#include <cstdint>

namespace chainfold::bench {

#define CHAINFOLD_BENCH_FN inline
#define CHAINFOLD_BENCH_BOTH(text, ...) \
  __VA_ARGS__                           \
  inline constexpr const char* text = #__VA_ARGS__;

// clang-format off
CHAINFOLD_BENCH_BOTH(kRandomText,
  CHAINFOLD_BENCH_FN unsigned long long mix(unsigned long long i) {
    unsigned long long x = (i + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
    return x ^ (x >> 32);
  }
  CHAINFOLD_BENCH_FN long long random_f16(unsigned long long i) {
    const unsigned long long h = mix(i);
    return (static_cast<long long>(h & 4095) - 2048) * (1ll << ((h >> 12) & 3));
  }
  CHAINFOLD_BENCH_FN long long random_balanced(unsigned long long i) {
    const unsigned long long h = mix(i);
    return (2 * static_cast<long long>(h & 2047) - 2047) * (1ll << ((h >> 12) & 3));
  }
  CHAINFOLD_BENCH_FN long long random_f32(unsigned long long i) {
    return static_cast<long long>(mix(i) & 0xffffff) - (1ll << 23);
  }
  CHAINFOLD_BENCH_FN long long random_f64(unsigned long long i) {
    return static_cast<long long>(mix(i) & ((1ull << 53) - 1)) - (1ll << 52);
  }
  CHAINFOLD_BENCH_FN long long random_i8(unsigned long long i) {
    return static_cast<long long>(mix(i) & 255) - 128;
  }
  CHAINFOLD_BENCH_FN long long random_bf16(unsigned long long i) {
    const unsigned long long h = mix(i);
    return (static_cast<long long>(h & 511) - 256) * (1ll << ((h >> 12) & 3));
  }
  CHAINFOLD_BENCH_FN long long random_i32(unsigned long long i) {
    return static_cast<long long>(mix(i) >> 32) - (1ll << 31);
  }
  CHAINFOLD_BENCH_FN long long random_other(unsigned long long i) {
    return random_f16(i + (1ull << 40));
  }
  CHAINFOLD_BENCH_FN long long eleven_bits(long long k) {
    const long long size = k < 0 ? -k : k;
    int shift = 0;
    while ((size >> shift) > 2047) ++shift;
    const long long rounded = ((size + ((1ll << shift) >> 1)) >> shift) << shift;
    return k < 0 ? -rounded : rounded;
  }
  CHAINFOLD_BENCH_FN long long random_normal(unsigned long long i) {
    long long sum = -6 * 65535;
    for (int word = 0; word < 3; ++word) {
      const unsigned long long h = mix(3 * i + static_cast<unsigned long long>(word));
      sum += static_cast<long long>((h & 65535) + ((h >> 16) & 65535) + ((h >> 32) & 65535) + (h >> 48));
    }
    return eleven_bits(sum);
  }
  CHAINFOLD_BENCH_FN long long random_uniform(unsigned long long i) {
    return eleven_bits(static_cast<long long>(mix(i) & 16383));
  }
  CHAINFOLD_BENCH_FN long long random_shipdate(unsigned long long i) {
    return 8036 + static_cast<long long>(mix(i) % 2526);
  }
  CHAINFOLD_BENCH_FN long long random_discount(unsigned long long i) {
    return static_cast<long long>((mix(i) >> 20) % 11);
  }
  CHAINFOLD_BENCH_FN long long random_quantity(unsigned long long i) {
    return 100 * (1 + static_cast<long long>((mix(i) >> 28) % 50));
  }
  CHAINFOLD_BENCH_FN long long random_price(unsigned long long i) {
    return 90000 + static_cast<long long>((mix(i) >> 36) % 10404950);
  }
)
// clang-format on

#undef CHAINFOLD_BENCH_BOTH
#undef CHAINFOLD_BENCH_FN

/// What an input holds; `other` is f16 as well, for a second input that differs from the first, and
/// so are `normal` (mean 0, variance 1: the sum of twelve uniform numbers), `uniform` in [0, 1] and
/// `balanced`, whose values k and -k are equally likely: running sums of 2^30 stay below 65504.
/// `f64_short` has the values of `f32` as f64.
enum class Source : std::uint8_t {
  f16,
  f32,
  f64,
  i8,
  shipdate,
  discount,
  quantity,
  price,
  bf16,
  i32,
  other,
  normal,
  uniform,
  balanced,
  f64_short
};

/// "normal" and "uniform"; "signed" for random numbers of both signs.
constexpr const char* name_of(Source source) noexcept {
  return source == Source::normal ? "normal" : source == Source::uniform ? "uniform" : "signed";
}

/// The exponent s of a source's values k * 2^-s.
constexpr int scale_of(Source source) noexcept {
  switch (source) {
    case Source::f16:
    case Source::uniform:
    case Source::balanced:
    case Source::other: return 14;
    case Source::normal: return 16;
    case Source::bf16: return 11;
    case Source::f64_short:
    case Source::f32: return 23;
    case Source::f64: return 52;
    default: return 0;
  }
}

/// The integer k of element i.
inline std::int64_t value_of(Source source, std::uint64_t i) {
  switch (source) {
    case Source::f16: return random_f16(i);
    case Source::f64_short:
    case Source::f32: return random_f32(i);
    case Source::f64: return random_f64(i);
    case Source::i8: return random_i8(i);
    case Source::shipdate: return random_shipdate(i);
    case Source::discount: return random_discount(i);
    case Source::quantity: return random_quantity(i);
    case Source::price: return random_price(i);
    case Source::bf16: return random_bf16(i);
    case Source::i32: return random_i32(i);
    case Source::other: return random_other(i);
    case Source::normal: return random_normal(i);
    case Source::uniform: return random_uniform(i);
    case Source::balanced: return random_balanced(i);
  }
  return 0;
}

}  // namespace chainfold::bench
