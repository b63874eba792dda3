#include "chainfold/codegen/base/ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen {
namespace {

template <class T>
Bits bits(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}
template <class T>
Bits apply(Op op, T a, T b = T{}, T c = T{}) {
  return evaluate(op, kDType<T>, kDType<T>, bits(a), bits(b), bits(c));
}
Bits convert(DType from, DType to, Bits x) { return evaluate(Op::convert, from, to, x); }

// The nearest half-precision value by search among all of them: another way than the
// implementation's.
class HalfTable {
 public:
  explicit HalfTable(DType type) {
    const std::uint32_t infinity = type == DType::f16 ? 0x7c00u : 0x7f80u;
    for (std::uint32_t b = 0; b < infinity; ++b) values_.push_back(double_of_bits(type, b));
    const double last = values_.back();
    values_.push_back(last + (last - values_[values_.size() - 2]));  // stands for infinity
  }
  Bits nearest(double x) const {
    const Bits sign = std::signbit(x) ? 0x8000u : 0;
    const double magnitude = std::fabs(x);
    if (magnitude >= values_.back()) return sign | (values_.size() - 1);
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    const auto low = static_cast<std::size_t>(above - values_.begin()) - 1;
    const double middle = values_[low] / 2 + values_[low + 1] / 2;  // exact in double
    if (magnitude < middle) return sign | low;
    if (magnitude > middle) return sign | (low + 1);
    return sign | (low % 2 == 0 ? low : low + 1);
  }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

class OpsHalves : public testing::TestWithParam<DType> {};

TEST_P(OpsHalves, RoundOnceFromDoubleAndFloat) {
  const HalfTable table(GetParam());
  for (std::size_t i = 0; i + 1 < table.values().size(); ++i) {
    const double middle = table.values()[i] / 2 + table.values()[i + 1] / 2;
    for (double x :
         {table.values()[i], middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)}) {
      ASSERT_EQ(bits_of_double(GetParam(), x), table.nearest(x)) << x;
      ASSERT_EQ(bits_of_double(GetParam(), -x), table.nearest(-x)) << -x;
      const auto f = static_cast<float>(x);
      if (std::isfinite(f)) {
        ASSERT_EQ(convert(DType::f32, GetParam(), bits(f)), table.nearest(static_cast<double>(f)))
            << f;
      }
    }
  }
}

TEST_P(OpsHalves, EveryValueReadsBack) {
  for (std::uint32_t b = 0; b < 0x10000u; ++b) {
    const double x = double_of_bits(GetParam(), b);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(double_of_bits(GetParam(), bits_of_double(GetParam(), x))));
    } else {
      ASSERT_EQ(bits_of_double(GetParam(), x), b);
      ASSERT_EQ(
          bits_of_double(GetParam(), std::strtof(text_of_bits(GetParam(), b).c_str(), nullptr)), b);
    }
  }
}

TEST_P(OpsHalves, RoundOnceFromIntegers) {
  const HalfTable table(GetParam());
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const int drop = static_cast<int>(random() % 62);
    std::int64_t x = static_cast<std::int64_t>(random()) >> drop;
    // Near ties: a few bits, then zeros, then a last one that only a single rounding sees.
    if (i % 2 == 0) x = (x & ~((std::int64_t{1} << (61 - drop)) - 1)) | (random() & 1u);
    const auto exact =
        static_cast<long double>(x);  // 64 bits of fraction on the machines we test on
    const auto cut = static_cast<double>(exact);
    // Move a double that was rounded back to the side where the integer stands.
    double side = cut;
    if (exact > static_cast<long double>(cut)) side = std::nextafter(cut, HUGE_VAL);
    if (exact < static_cast<long double>(cut)) side = std::nextafter(cut, -HUGE_VAL);
    ASSERT_EQ(bits_of_int(GetParam(), x), table.nearest(side)) << x;
  }
}

#ifdef __FLT16_MANT_DIG__
__extension__ using Native = _Float16;
TEST(OpsF16, AgreesWithTheCompilersOwnType) {
  for (std::uint32_t b = 0; b < 0x10000u; ++b) {
    const auto native = static_cast<float>(std::bit_cast<Native>(static_cast<std::uint16_t>(b)));
    const auto ours =
        std::bit_cast<float>(static_cast<std::uint32_t>(convert(DType::f16, DType::f32, b)));
    if (std::isnan(native)) {
      ASSERT_TRUE(std::isnan(ours));
    } else {
      ASSERT_EQ(bits(ours), bits(native));
    }
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) continue;
    const auto native = std::bit_cast<std::uint16_t>(static_cast<Native>(x));
    ASSERT_EQ(convert(DType::f32, DType::f16, bits(x)), native) << x;
  }
}
#endif
INSTANTIATE_TEST_SUITE_P(Ops, OpsHalves, testing::Values(DType::f16, DType::bf16),
                         [](const auto& instance) {
                           return std::string(chainfold::name_of(instance.param));
                         });

TEST(OpsConvert, IntegersToF32RoundOnce) {
  // 2^62 + 2^38 + 1: a tie in f32 once the last bit was lost in f64.
  const std::int64_t x = (std::int64_t{1} << 62) + (std::int64_t{1} << 38) + 1;
  EXPECT_EQ(bits_of_int(DType::f32, x), bits(0x1.000002p62f));
  EXPECT_EQ(convert(DType::u64, DType::f32, bits(~std::uint64_t{0})), bits(0x1p64f));
  EXPECT_EQ(convert(DType::u64, DType::f64, bits(~std::uint64_t{0})), bits(0x1p64));
  EXPECT_EQ(bits_of_int(DType::bf16, (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1),
            0x5e81u);
}

TEST(OpsConvert, FloatsToIntegersSaturate) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(convert(DType::f32, DType::i8, bits(-129.0f)), bits(std::int8_t{-128}));
  EXPECT_EQ(convert(DType::f32, DType::i8, bits(127.9f)), 127u);
  EXPECT_EQ(convert(DType::f32, DType::u8, bits(-0.9f)), 0u);
  EXPECT_EQ(convert(DType::f32, DType::u8, bits(1e9f)), 255u);
  EXPECT_EQ(convert(DType::f32, DType::i32, bits(-1.9f)), bits(std::int32_t{-1}));
  EXPECT_EQ(convert(DType::f32, DType::i32, bits(0x1p31f)),
            bits(std::numeric_limits<std::int32_t>::max()));
  EXPECT_EQ(convert(DType::f64, DType::i64, bits(0x1p63)),
            bits(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(convert(DType::f64, DType::i64, bits(-0x1p63)),
            bits(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(convert(DType::f64, DType::u64, bits(0x1p63)), std::uint64_t{1} << 63);
  EXPECT_EQ(convert(DType::f64, DType::u64, bits(0x1p64)), ~std::uint64_t{0});
  EXPECT_EQ(convert(DType::f16, DType::i16, bits_of_double(DType::f16, -3.75)),
            bits(std::int16_t{-3}));
  for (DType to : {DType::i8, DType::u16, DType::i64, DType::u64}) {
    EXPECT_EQ(convert(DType::f32, to, bits(nan)), 0u);
  }
}

TEST(OpsConvert, IntegersWrapAndBooleansAreZeroOrOne) {
  EXPECT_EQ(convert(DType::i32, DType::u8, bits(std::int32_t{-1})), 0xffu);
  EXPECT_EQ(convert(DType::i8, DType::i64, bits(std::int8_t{-2})), bits(std::int64_t{-2}));
  EXPECT_EQ(convert(DType::u32, DType::i64, 0xffffffffu), 0xffffffffu);
  EXPECT_EQ(convert(DType::i64, DType::i32, 0x1'8000'0000u), 0x8000'0000u);
  EXPECT_EQ(convert(DType::f32, DType::boolean, bits(-0.0f)), 0u);
  EXPECT_EQ(convert(DType::f32, DType::boolean, bits(std::numeric_limits<float>::quiet_NaN())), 1u);
  EXPECT_EQ(convert(DType::i32, DType::boolean, 256u), 1u);
  EXPECT_EQ(convert(DType::boolean, DType::f16, 1u), 0x3c00u);
  EXPECT_EQ(convert(DType::boolean, DType::i64, 1u), 1u);
}

template <class T>
class OpsIntegers : public testing::Test {};
using IntegerTypes = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                    std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(OpsIntegers, IntegerTypes);

// Against the mathematical result in 128 bits, cut to the type.
TYPED_TEST(OpsIntegers, AgreeWithWideArithmetic) {
  using T = TypeParam;
  __extension__ using Wide = __int128;
  const int width = 8 * sizeof(T);
  std::mt19937_64 random(3);
  auto draw = [&] {
    switch (random() % 5) {
      case 0: return std::numeric_limits<T>::min();
      case 1: return std::numeric_limits<T>::max();
      case 2: return static_cast<T>(random() % 3 - 1);
      default: return static_cast<T>(random());
    }
  };
  for (int i = 0; i < 20000; ++i) {
    const T a = draw(), b = draw(), c = draw();
    const Wide wa = a, wb = b;
    auto cut = [](Wide x) { return bits(static_cast<T>(x)); };
    ASSERT_EQ(apply(Op::add, a, b), cut(wa + wb));
    ASSERT_EQ(apply(Op::sub, a, b), cut(wa - wb));
    ASSERT_EQ(apply(Op::mul, a, b), bits(static_cast<T>(static_cast<std::uint64_t>(wa) *
                                                        static_cast<std::uint64_t>(wb))));
    ASSERT_EQ(apply(Op::fma, a, b, c), apply(Op::add, static_cast<T>(apply(Op::mul, a, b)), c));
    ASSERT_EQ(apply(Op::neg, a), cut(-wa));
    ASSERT_EQ(apply(Op::abs, a), cut(wa < 0 ? -wa : wa));
    ASSERT_EQ(apply(Op::bit_not, a), cut(~wa));
    // Division truncates; the quotient -MIN wraps to MIN, so only the remainder rule is special.
    const bool overflows = std::is_signed_v<T> && a == std::numeric_limits<T>::min() && wb == -1;
    ASSERT_EQ(apply(Op::div, a, b), b == 0 ? 0 : overflows ? bits(a) : cut(wa / wb));
    ASSERT_EQ(apply(Op::rem, a, b), b == 0 ? bits(a) : cut(wa % wb));
    ASSERT_EQ(apply(Op::min, a, b), bits(a < b ? a : b));
    ASSERT_EQ(apply(Op::max, a, b), bits(a < b ? b : a));
    ASSERT_EQ(apply(Op::bit_and, a, b), cut(wa & wb));
    ASSERT_EQ(apply(Op::bit_or, a, b), cut(wa | wb));
    ASSERT_EQ(apply(Op::bit_xor, a, b), cut(wa ^ wb));
    const int amount =
        static_cast<int>(static_cast<std::uint64_t>(b) % static_cast<std::uint64_t>(width));
    ASSERT_EQ(apply(Op::shl, a, b), bits(static_cast<T>(static_cast<std::uint64_t>(a) << amount)));
    ASSERT_EQ(apply(Op::shr, a, b), cut(wa >> amount));
    auto compare = [&](Op op) { return evaluate(op, kDType<T>, DType::boolean, bits(a), bits(b)); };
    ASSERT_EQ(compare(Op::eq), Bits{wa == wb});
    ASSERT_EQ(compare(Op::ne), Bits{wa != wb});
    ASSERT_EQ(compare(Op::lt), Bits{wa < wb});
    ASSERT_EQ(compare(Op::le), Bits{wa <= wb});
    ASSERT_EQ(compare(Op::gt), Bits{wa > wb});
    ASSERT_EQ(compare(Op::ge), Bits{wa >= wb});
    ASSERT_EQ(bits_of_int(kDType<T>, static_cast<std::int64_t>(a)), bits(a));
  }
}

template <class T>
class OpsFloats : public testing::Test {};
using FloatTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(OpsFloats, FloatTypes);

TYPED_TEST(OpsFloats, AgreeWithTheMachine) {
  using T = TypeParam;
  using U = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::mt19937_64 random(4);
  auto same = [](Bits got, T want) {
    const T value = std::bit_cast<T>(static_cast<U>(got));
    return std::isnan(want) ? std::isnan(value) : got == bits(want);
  };
  for (int i = 0; i < 50000; ++i) {
    const T a = std::bit_cast<T>(static_cast<U>(random()));
    const T b = i % 3 == 0 ? a : std::bit_cast<T>(static_cast<U>(random()));
    const T c = std::bit_cast<T>(static_cast<U>(random()));
    ASSERT_TRUE(same(apply(Op::add, a, b), a + b));
    ASSERT_TRUE(same(apply(Op::sub, a, b), a - b));
    ASSERT_TRUE(same(apply(Op::mul, a, b), a * b));
    ASSERT_TRUE(same(apply(Op::div, a, b), a / b));
    ASSERT_TRUE(same(apply(Op::rem, a, b), std::fmod(a, b)));
    ASSERT_TRUE(same(apply(Op::fma, a, b, c), std::fma(a, b, c)));
    ASSERT_TRUE(same(apply(Op::sqrt, a), std::sqrt(a)));
    ASSERT_TRUE(same(apply(Op::floor, a), std::floor(a)));
    ASSERT_TRUE(same(apply(Op::ceil, a), -std::floor(-a)));
    // Half away from zero: what std::round says, by other means.
    const T whole = std::trunc(a), part = std::fabs(a - whole);
    const T nearest = std::isfinite(a) && part >= T(0.5) ? whole + std::copysign(T(1), a) : whole;
    ASSERT_TRUE(same(apply(Op::round, a), std::isfinite(a) ? nearest : a));
    const T sign = a > 0 ? T(1) : a < 0 ? T(-1) : a == 0 ? T(0) : a;
    ASSERT_TRUE(same(apply(Op::sign, a), sign));
    ASSERT_EQ(evaluate(Op::is_nan, kDType<T>, DType::boolean, bits(a)), Bits{std::isnan(a)});
    ASSERT_EQ(evaluate(Op::is_infinite, kDType<T>, DType::boolean, bits(a)), Bits{std::isinf(a)});
    ASSERT_EQ(evaluate(Op::is_finite, kDType<T>, DType::boolean, bits(a)), Bits{std::isfinite(a)});
    ASSERT_EQ(evaluate(Op::le, kDType<T>, DType::boolean, bits(a), bits(b)), Bits{a <= b});
    ASSERT_EQ(evaluate(Op::ne, kDType<T>, DType::boolean, bits(a), bits(b)), Bits{a != b});
    if (!std::isnan(a)) {
      ASSERT_EQ(bits_of_double(kDType<T>, static_cast<double>(a)), bits(a));
      ASSERT_EQ(
          bits_of_double(kDType<T>, std::strtod(text_of_bits(kDType<T>, bits(a)).c_str(), nullptr)),
          bits(a));
    }
  }
}

TYPED_TEST(OpsFloats, NaNAndSignedZeros) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), zero = 0;
  for (Op op : {Op::min, Op::max}) {
    for (Bits r : {apply(op, nan, T{1}), apply(op, T{1}, nan)}) {
      EXPECT_TRUE(std::isnan(double_of_bits(kDType<T>, r)));
    }
  }
  EXPECT_EQ(apply(Op::min, zero, -zero), bits(-zero));
  EXPECT_EQ(apply(Op::min, -zero, zero), bits(-zero));
  EXPECT_EQ(apply(Op::max, zero, -zero), bits(zero));
  EXPECT_EQ(apply(Op::max, -zero, zero), bits(zero));
  EXPECT_EQ(apply(Op::neg, zero), bits(-zero));
  EXPECT_EQ(apply(Op::abs, -zero), bits(zero));
  for (Op op : {Op::eq, Op::lt, Op::le, Op::gt, Op::ge}) {
    EXPECT_EQ(evaluate(op, kDType<T>, DType::boolean, bits(nan), bits(nan)), 0u);
  }
  EXPECT_EQ(evaluate(Op::ne, kDType<T>, DType::boolean, bits(nan), bits(nan)), 1u);
  EXPECT_EQ(text_of_bits(kDType<T>, bits(nan)), "nan");
}

TEST(OpsSelect, PassesBitsOfEveryTypeThrough) {
  EXPECT_EQ(evaluate(Op::select, DType::f16, DType::f16, 1, 0x7e01u, 2), 0x7e01u);
  EXPECT_EQ(evaluate(Op::select, DType::u64, DType::u64, 0, 1, ~Bits{0}), ~Bits{0});
}

TEST(OpsReinterpret, KeepsBitsAndAsksForAsMany) {
  EXPECT_EQ(evaluate(Op::reinterpret, DType::f16, DType::i16, 0xfe01u), 0xfe01u);
  EXPECT_EQ(evaluate(Op::reinterpret, DType::i8, DType::u8, 0x80u), 0x80u);
  EXPECT_EQ(evaluate(Op::reinterpret, DType::u64, DType::f64, ~Bits{0}), ~Bits{0});
  for (int f = 0; f < kDTypeCount; ++f) {
    for (int t = 0; t < kDTypeCount; ++t) {
      const auto from = static_cast<DType>(f), to = static_cast<DType>(t);
      const bool fits =
          size_of(from) == size_of(to) && from != DType::boolean && to != DType::boolean;
      EXPECT_EQ(is_defined(Op::reinterpret, from, to), fits) << name_of(from) << name_of(to);
      if (!fits) {
        EXPECT_THROW(evaluate(Op::reinterpret, from, to, 1), InternalError);
      }
      EXPECT_TRUE(is_defined(Op::convert, from, to));
      EXPECT_FALSE(is_defined(Op::add, from, to)) << "no cast";
    }
  }
}

TEST(OpsDefinedness, EvaluateThrowsExactlyWhereAnOperationIsUndefined) {
  for (int o = 0; o < kOpCount; ++o) {
    for (int t = 0; t < kDTypeCount; ++t) {
      const Op op = static_cast<Op>(o);
      const DType type = static_cast<DType>(t);
      if (is_defined(op, type)) {
        EXPECT_NO_THROW(evaluate(op, type, type, 1, 1, 1)) << name_of(op) << " " << name_of(type);
      } else {
        EXPECT_THROW(evaluate(op, type, type, 1, 1, 1), InternalError)
            << name_of(op) << " " << name_of(type);
      }
    }
  }
}

TEST(OpsCommutativity, HoldsWhereItIsClaimed) {
  std::mt19937_64 random(5);
  for (int o = 0; o < kOpCount; ++o) {
    const Op op = static_cast<Op>(o);
    if (!is_commutative(op)) continue;
    for (DType type : {DType::i8, DType::u64, DType::f32, DType::f64}) {
      if (!is_defined(op, type)) continue;
      const Bits mask = size_of(type) == 8 ? ~Bits{0} : (Bits{1} << (8 * size_of(type))) - 1;
      for (int i = 0; i < 2000; ++i) {
        const Bits a = random() & mask, b = random() & mask;
        ASSERT_EQ(evaluate(op, type, type, a, b), evaluate(op, type, type, b, a)) << name_of(op);
      }
    }
  }
}

TEST(OpsText, ReadsWell) {
  EXPECT_EQ(text_of_bits(DType::boolean, 1), "true");
  EXPECT_EQ(text_of_bits(DType::i8, 0xfd), "-3");
  EXPECT_EQ(text_of_bits(DType::u8, 0xfd), "253");
  EXPECT_EQ(text_of_bits(DType::f32, bits(1.5f)), "1.5");
  EXPECT_EQ(text_of_bits(DType::f16, 0xc000), "-2");
  EXPECT_EQ(text_of_bits(DType::f64, bits(-0.0)), "-0");
}

}  // namespace
}  // namespace chainfold::codegen
