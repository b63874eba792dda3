// The device helpers that are plain C++ run here on the host, against the definition of the
// operations. Built-in functions of CUDA are stood in for by what the PTX ISA says of their
// instructions.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "chainfold/codegen/base/ops.hpp"

namespace chainfold::test {
namespace {

using codegen::Bits;
using codegen::evaluate;
using codegen::Op;

float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
int __float_as_int(float x) { return std::bit_cast<int>(x); }
int __double2hiint(double x) { return static_cast<int>(std::bit_cast<long long>(x) >> 32); }

// prmt: each half-byte of the selector names one of the eight bytes of both words.
unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t both = x | static_cast<std::uint64_t>(y) << 32;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned picked = selector >> (4 * i) & 7;
    result |= static_cast<unsigned>(both >> (8 * picked) & 0xff) << (8 * i);
  }
  return result;
}

// cvt.rzi saturates; NaN gives 0 from f32 to 32 bits and the bits of the lowest signed value
// elsewhere.
template <class T, class F>
T truncated(F x, T of_nan) {
  if (std::isnan(x)) return of_nan;
  const long double whole = std::trunc(static_cast<long double>(x));
  if (whole <= static_cast<long double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (whole >= static_cast<long double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(whole);
}
constexpr long long kLowest64 = std::numeric_limits<long long>::min();
int __float2int_rz(float x) { return truncated<int>(x, 0); }
unsigned __float2uint_rz(float x) { return truncated<unsigned>(x, 0u); }
long long __float2ll_rz(float x) { return truncated<long long>(x, kLowest64); }
unsigned long long __float2ull_rz(float x) {
  return truncated<unsigned long long>(x, static_cast<unsigned long long>(kLowest64));
}
int __double2int_rz(double x) { return truncated<int>(x, std::numeric_limits<int>::min()); }
unsigned __double2uint_rz(double x) { return truncated<unsigned>(x, 0x80000000u); }
long long __double2ll_rz(double x) { return truncated<long long>(x, kLowest64); }
unsigned long long __double2ull_rz(double x) {
  return truncated<unsigned long long>(x, static_cast<unsigned long long>(kLowest64));
}

template <class T>
float cut_to_float(T value) {
  volatile T hidden = value;  // else the compiler converts with its own rounding
  std::fesetround(FE_TOWARDZERO);
  volatile float result = static_cast<float>(hidden);
  std::fesetround(FE_TONEAREST);
  return result;
}
float __double2float_rz(double x) { return cut_to_float(x); }
float __ll2float_rz(long long x) { return cut_to_float(x); }
float __ull2float_rz(unsigned long long x) { return cut_to_float(x); }

#define CF_DEVICE [[maybe_unused]] static
#include "chainfold/codegen/emit/cuda/prelude/convert.cuh"
#include "chainfold/codegen/emit/cuda/prelude/float.cuh"
#include "chainfold/codegen/emit/cuda/prelude/integer.cuh"
#undef CF_DEVICE

template <class T>
Bits bits_of(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(value);
  else
    return static_cast<Bits>(static_cast<std::make_unsigned_t<T>>(value));
}

const std::vector<double> kFloats = {
    0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.75, -2.75, 127.9, 128.0, -128.9, 255.9, 256.0, 65504.0,
    65520.0, 2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0,
    9.2233720368547748e18, 9.2233720368547758e18, -9.2233720368547758e18, 1.8446744073709552e19,
    1e30, -1e30, 1e300, 1e-40, -1e-45, 1e-320, 3.4028234663852886e38, 3.3961775292304601e38,
    // halfway between neighbours in bf16, and a little to either side of it
    1.00390625, 1.01171875, 1.00390625000001, 1.00390624999999, -1.00390625000001,
    std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::quiet_NaN()};

template <class T>
std::vector<T> integers() {
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           7,
                           31,
                           64,
                           100,
                           static_cast<T>(-1),
                           static_cast<T>(-2),
                           static_cast<T>(-100),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max()};
  for (int shift = 8; shift < std::numeric_limits<T>::digits; shift += 5) {
    // Close to halfway between neighbours in bf16, where two roundings would show.
    const T half = static_cast<T>((T{257} << shift) / 2);
    for (const T value : {static_cast<T>(half - 1), half, static_cast<T>(half + 1)})
      values.push_back(value);
  }
  return values;
}

void expect_same(DType type, Bits expected, Bits got, Op op, Bits a, Bits b = 0) {
  if (is_float(type) && std::isnan(codegen::double_of_bits(type, expected))) {
    EXPECT_TRUE(std::isnan(codegen::double_of_bits(type, got)))
        << name_of(op) << " " << a << " " << b;
  } else {
    EXPECT_EQ(got, expected) << name_of(op) << " of " << a << " and " << b << ", " << name_of(type);
  }
}

/// Every narrow integer, at each place of a word whose other elements are something else.
template <class T>
void check_packed_conversions(float (*convert)(unsigned, unsigned)) {
  constexpr unsigned kBits = 8 * sizeof(T), kPerWord = 32 / kBits;
  std::mt19937 random(29);
  for (int value = std::numeric_limits<T>::min(); value <= std::numeric_limits<T>::max(); ++value) {
    for (unsigned at = 0; at < kPerWord; ++at) {
      const unsigned ones = (std::uint64_t{1} << kBits) - 1, shift = kBits * at;
      const unsigned own = static_cast<unsigned>(value) & ones;
      const auto word = static_cast<unsigned>((random() & ~(ones << shift)) | own << shift);
      const unsigned picked = kPerWord == 4 ? 0x7440U + at : 0x7410U + 0x22U * at;
      ASSERT_EQ(convert(word, picked), static_cast<float>(value)) << value << " at " << at;
    }
  }
}

TEST(EmitCudaPrelude, PackedIntegersBecomeFloats) {
  check_packed_conversions<std::int8_t>(cf_f32_of_i8);
  check_packed_conversions<std::uint8_t>(cf_f32_of_u8);
  check_packed_conversions<std::int16_t>(cf_f32_of_i16);
  check_packed_conversions<std::uint16_t>(cf_f32_of_u16);
}

template <class T>
void check_integer_helpers() {
  constexpr DType t = kDType<T>;
  for (const T a : integers<T>()) {
    for (const T b : integers<T>()) {
      const auto check = [&](Op op, T got) {
        expect_same(t, evaluate(op, t, t, bits_of(a), bits_of(b)), bits_of(got), op, bits_of(a),
                    bits_of(b));
      };
      check(Op::div, cf_div(a, b));
      check(Op::rem, cf_rem(a, b));
      if constexpr (std::is_signed_v<T>) {
        check(Op::neg, cf_neg(a));
        check(Op::abs, cf_abs(a));
      }
    }
  }
}

/// Every element of words of them, against the operation on one. Here that is the code for before
/// sm_90; from there on the tests on GPUs tell.
template <class T>
void check_packed(Op op, unsigned (*packed)(unsigned, unsigned)) {
  constexpr int kBits = 8 * sizeof(T);
  constexpr DType t = kDType<T>;
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    unsigned a = static_cast<unsigned>(random()), b = static_cast<unsigned>(random());
    if (round % 4 == 1) b = a ^ (1U << random() % 32);  // mostly equal elements
    if (round % 4 == 2) a &= 0x80808080U, b &= 0xff80ff80U;
    const unsigned got = packed(a, b);
    for (int at = 0; at < 32; at += kBits) {
      const Bits x = bits_of(static_cast<T>(a >> at)), y = bits_of(static_cast<T>(b >> at));
      expect_same(t, evaluate(op, t, t, x, y), bits_of(static_cast<T>(got >> at)), op, x, y);
    }
  }
}

TEST(EmitCudaPrelude, ExtremesOfPackedElements) {
  check_packed<std::int8_t>(Op::min, cf_min_i8x4);
  check_packed<std::int8_t>(Op::max, cf_max_i8x4);
  check_packed<std::uint8_t>(Op::min, cf_min_u8x4);
  check_packed<std::uint8_t>(Op::max, cf_max_u8x4);
  check_packed<std::int16_t>(Op::min, cf_min_i16x2);
  check_packed<std::int16_t>(Op::max, cf_max_i16x2);
  check_packed<std::uint16_t>(Op::min, cf_min_u16x2);
  check_packed<std::uint16_t>(Op::max, cf_max_u16x2);
}

TEST(CudaPrelude, integer_arithmetic_is_the_definition) {
  check_integer_helpers<int>();
  check_integer_helpers<unsigned>();
  check_integer_helpers<long long>();
  check_integer_helpers<unsigned long long>();
}

template <class T>
void check_float_helpers() {
  constexpr DType t = kDType<T>;
  for (const double wide_a : kFloats) {
    const T a = static_cast<T>(wide_a);
    EXPECT_EQ(cf_is_finite(a), evaluate(Op::is_finite, t, DType::boolean, bits_of(a)) != 0)
        << wide_a;
    for (const double wide_b : kFloats) {
      const T b = static_cast<T>(wide_b);
      for (const Op op : {Op::min, Op::max}) {
        const T got = op == Op::min ? cf_min(a, b) : cf_max(a, b);
        expect_same(t, evaluate(op, t, t, bits_of(a), bits_of(b)), bits_of(got), op, bits_of(a),
                    bits_of(b));
      }
    }
    const auto converted = [&](DType to, Bits got) {
      expect_same(to, evaluate(Op::convert, t, to, bits_of(a)), got, Op::convert, bits_of(a));
    };
    converted(DType::i32, bits_of(cf_i32_of(a)));
    converted(DType::u32, bits_of(cf_u32_of(a)));
    converted(DType::i64, bits_of(cf_i64_of(a)));
    converted(DType::u64, bits_of(cf_u64_of(a)));
    converted(DType::i8, bits_of(static_cast<std::int8_t>(cf_clamp(cf_i32_of(a), -128, 127))));
    converted(DType::u16, bits_of(static_cast<std::uint16_t>(cf_clamp(cf_i32_of(a), 0, 65535))));
  }
}

TEST(CudaPrelude, floats_keep_nan_and_signed_zeros_and_saturate) {
  check_float_helpers<float>();
  check_float_helpers<double>();
}

TEST(CudaPrelude, bf16_is_rounded_once) {
  for (const double x : kFloats) {
    const auto expected = evaluate(Op::convert, DType::f64, DType::bf16, bits_of(x));
    expect_same(DType::bf16, expected, cf_bf16_of_f64(x), Op::convert, bits_of(x));
    const float f = static_cast<float>(x);
    expect_same(DType::bf16, evaluate(Op::convert, DType::f32, DType::bf16, bits_of(f)),
                cf_bf16_of_f32(f), Op::convert, bits_of(f));
  }
  for (const long long x : integers<long long>()) {
    expect_same(DType::bf16, evaluate(Op::convert, DType::i64, DType::bf16, bits_of(x)),
                cf_bf16_of_integer(x), Op::convert, bits_of(x));
    const auto u = static_cast<unsigned long long>(x);
    expect_same(DType::bf16, evaluate(Op::convert, DType::u64, DType::bf16, bits_of(u)),
                cf_bf16_of_integer(u), Op::convert, bits_of(u));
  }
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const auto half = static_cast<unsigned short>(bits);
    expect_same(DType::f32, evaluate(Op::convert, DType::bf16, DType::f32, bits),
                bits_of(cf_f32_of_bf16(half)), Op::convert, bits);
  }
}

TEST(CudaPrelude, words_hold_their_first_element_in_the_low_bits) {
  EXPECT_EQ(cf_pack2(0x1234, 0xabcd), 0xabcd1234u);
  EXPECT_EQ(cf_pack4(0x12, 0x34, 0xab, 0xcd), 0xcdab3412u);
}

TEST(CudaPrelude, tables_of_lanes) {
  std::vector<std::uint8_t> table;
  unsigned planes[5] = {};
  for (int lane = 0; lane < 32; ++lane) {
    table.push_back(static_cast<std::uint8_t>(lane * lane % 32));
    for (int bit = 0; bit < 5; ++bit)
      planes[bit] |= static_cast<unsigned>(table.back() >> bit & 1) << lane;
  }
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(cf_table(lane, planes[0], planes[1], planes[2], planes[3], planes[4]), table[lane]);
    EXPECT_EQ(cf_lanes(0x80000001u, lane, 0x3c003c00u), lane == 0 || lane == 31 ? 0x3c003c00u : 0u);
  }
}

}  // namespace
}  // namespace chainfold::test
