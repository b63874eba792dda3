#include "chainfold/codegen/base/ops.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/float_environment.hpp"
#include "chainfold/codegen/base/op_table.hpp"

namespace chainfold::codegen {
namespace {

template <class T>
T decode(Bits bits) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

// NaN payloads differ between machines; here every computed NaN is the positive quiet one.
template <class T>
Bits encode(T value) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    return std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<Bits>(static_cast<std::make_unsigned_t<T>>(value));
  }
}

// --- conversions

// Rounds to odd: truncated, and the last bit set if anything was lost. A later rounding to a type
// with at least two bits less then gives what one direct rounding would.
float odd_float(double value) noexcept {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || std::isnan(value)) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;  // the magnitude's predecessor; also infinity's
  return std::bit_cast<float>(bits | 1u);
}

// The same for integers: all but the upper 53 bits collapse into the last of them.
double odd_double(std::uint64_t magnitude) noexcept {
  const int excess = 11 - std::countl_zero(magnitude | 1u);
  if (excess <= 0) return static_cast<double>(magnitude);
  const std::uint64_t kept = magnitude >> excess;
  const bool lost = (kept << excess) != magnitude;
  return std::ldexp(static_cast<double>(kept | (lost ? 1u : 0u)), excess);
}

template <class Half>
Bits encode_half(float value) noexcept {
  const Half half(value);
  if (!std::isnan(value)) return half.bits;
  return std::is_same_v<Half, f16> ? 0x7e00u : 0x7fc0u;
}

template <class T>
Bits saturate(double value) noexcept {
  if (std::isnan(value)) return 0;
  // The upper limit as a double may be one above the type's; at or beyond it saturates either way.
  constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= kLow) return encode(std::numeric_limits<T>::min());
  if (value >= kHigh) return encode(std::numeric_limits<T>::max());
  return encode(static_cast<T>(value));
}

Bits from_double(DType to, double value) {
  switch (to) {
    case DType::boolean: return value != 0 ? 1 : 0;
    case DType::i8: return saturate<std::int8_t>(value);
    case DType::u8: return saturate<std::uint8_t>(value);
    case DType::i16: return saturate<std::int16_t>(value);
    case DType::u16: return saturate<std::uint16_t>(value);
    case DType::i32: return saturate<std::int32_t>(value);
    case DType::u32: return saturate<std::uint32_t>(value);
    case DType::i64: return saturate<std::int64_t>(value);
    case DType::u64: return saturate<std::uint64_t>(value);
    case DType::f16: return encode_half<f16>(odd_float(value));
    case DType::bf16: return encode_half<bf16>(odd_float(value));
    case DType::f32: return encode(static_cast<float>(value));
    case DType::f64: return encode(value);
  }
  return 0;
}

template <class Wide>
Bits from_integer(DType to, Wide value) {
  switch (to) {
    case DType::boolean: return value != 0 ? 1 : 0;
    case DType::f16:
    case DType::bf16: {
      const bool negative = value < 0;
      const auto bits = static_cast<std::uint64_t>(value);
      const double magnitude = odd_double(negative ? 0 - bits : bits);
      return from_double(to, negative ? -magnitude : magnitude);
    }
    case DType::f32: return encode(static_cast<float>(value));
    case DType::f64: return encode(static_cast<double>(value));
    default:
      const int width = 8 * size_of(to);
      const Bits mask = width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
      return static_cast<Bits>(value) & mask;
  }
}

std::int64_t signed_of_bits(DType type, Bits bits) noexcept {
  switch (type) {
    case DType::i8: return decode<std::int8_t>(bits);
    case DType::i16: return decode<std::int16_t>(bits);
    case DType::i32: return decode<std::int32_t>(bits);
    default: return static_cast<std::int64_t>(bits);
  }
}

Bits convert(DType from, DType to, Bits bits) {
  if (from == to) return bits;
  if (is_float(from)) return from_double(to, double_of_bits(from, bits));
  if (is_signed(from)) return from_integer(to, signed_of_bits(from, bits));
  return from_integer(to, static_cast<std::uint64_t>(bits));
}

// --- arithmetic

[[noreturn]] void undefined(Op op, DType type) {
  throw InternalError(
      fmt::format("operation {} is not defined on {}; check is_defined before evaluating",
                  name_of(op), name_of(type)));
}

template <class T>
bool compare(Op op, T a, T b) noexcept {
  switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    default: return a >= b;
  }
}

template <class T>
Bits evaluate_integer(Op op, DType type, Bits x, Bits y, Bits z) {
  // Unsigned arithmetic wraps; 16-bit operands would be promoted to int, so it is done in 32 bits
  // up.
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<(sizeof(T) < 4), std::uint32_t, U>;
  constexpr unsigned kBits = 8 * sizeof(T);
  const T a = decode<T>(x), b = decode<T>(y);
  const Wide ua = static_cast<U>(a), ub = static_cast<U>(b), uc = decode<U>(z);
  auto wrapped = [](Wide value) { return static_cast<Bits>(static_cast<U>(value)); };
  switch (op) {
    case Op::neg: return wrapped(Wide{0} - ua);
    case Op::abs: return wrapped(a < T{0} ? Wide{0} - ua : ua);
    case Op::sign: return encode(static_cast<T>((a > T{0} ? 1 : 0) - (a < T{0} ? 1 : 0)));
    case Op::bit_not: return wrapped(~ua);
    case Op::add: return wrapped(ua + ub);
    case Op::sub: return wrapped(ua - ub);
    case Op::mul: return wrapped(ua * ub);
    case Op::fma: return wrapped(ua * ub + uc);
    case Op::div:
      if (b == 0) return 0;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapped(Wide{0} - ua);
      return encode(static_cast<T>(a / b));
    case Op::rem:
      if (b == 0) return x;
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
      return encode(static_cast<T>(a % b));
    case Op::min: return encode(std::min(a, b));
    case Op::max: return encode(std::max(a, b));
    case Op::bit_and: return wrapped(ua & ub);
    case Op::bit_or: return wrapped(ua | ub);
    case Op::bit_xor: return wrapped(ua ^ ub);
    case Op::shl: return wrapped(ua << (ub % kBits));
    case Op::shr: return encode(static_cast<T>(a >> (ub % kBits)));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: return compare(op, a, b) ? 1 : 0;
    default: undefined(op, type);
  }
}

template <class T>
T minimum(T a, T b) noexcept {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) noexcept {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
Bits evaluate_float(Op op, DType type, Bits x, Bits y, Bits z) {
  const T a = decode<T>(x), b = decode<T>(y), c = decode<T>(z);
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  switch (op) {
    case Op::neg: return x ^ kSign;
    case Op::abs: return x & ~kSign;
    case Op::sqrt: return encode(std::sqrt(a));
    case Op::sign: return encode(a > 0 ? T{1} : a < 0 ? T{-1} : a == 0 ? T{0} : a);
    case Op::rsqrt: return encode(static_cast<T>(T{1} / std::sqrt(a)));
    case Op::floor: return encode(std::floor(a));
    case Op::ceil: return encode(std::ceil(a));
    case Op::round: return encode(std::round(a));
    case Op::exp: return encode(std::exp(a));
    case Op::exp2: return encode(std::exp2(a));
    case Op::expm1: return encode(std::expm1(a));
    case Op::log: return encode(std::log(a));
    case Op::log2: return encode(std::log2(a));
    case Op::log1p: return encode(std::log1p(a));
    case Op::sin: return encode(std::sin(a));
    case Op::cos: return encode(std::cos(a));
    case Op::tanh: return encode(std::tanh(a));
    case Op::erf: return encode(std::erf(a));
    case Op::is_finite: return std::isfinite(a) ? 1 : 0;
    case Op::is_nan: return std::isnan(a) ? 1 : 0;
    case Op::is_infinite: return std::isinf(a) ? 1 : 0;
    case Op::add: return encode(static_cast<T>(a + b));
    case Op::sub: return encode(static_cast<T>(a - b));
    case Op::mul: return encode(static_cast<T>(a * b));
    case Op::div: return encode(static_cast<T>(a / b));
    case Op::rem: return encode(std::fmod(a, b));
    case Op::min: return encode(minimum(a, b));
    case Op::max: return encode(maximum(a, b));
    case Op::pow: return encode(std::pow(a, b));
    case Op::fma: return encode(std::fma(a, b, c));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: return compare(op, a, b) ? 1 : 0;
    default: undefined(op, type);
  }
}

Bits evaluate_boolean(Op op, Bits a, Bits b) {
  switch (op) {
    case Op::bit_not: return a ^ 1u;
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::bit_xor: return a ^ b;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: return compare(op, a, b) ? 1 : 0;
    default: undefined(op, DType::boolean);
  }
}

}  // namespace

std::string_view name_of(Op op) noexcept { return row_of(op).name; }

bool is_defined(Op op, DType type) noexcept {
  const bool half = type == DType::f16 || type == DType::bf16;
  switch (row_of(op).domain) {
    case OpDomain::numbers: return type != DType::boolean && !half;
    case OpDomain::floats: return is_float(type) && !half;
    case OpDomain::bits: return !is_float(type);
    case OpDomain::integers: return is_integer(type);
    case OpDomain::no_halves: return !half;
    case OpDomain::not_boolean: return type != DType::boolean;
    case OpDomain::all: return true;
  }
  return false;
}

bool is_defined(Op cast, DType from, DType to) noexcept {
  if (!is_cast(cast) || !is_defined(cast, from)) return false;
  return cast == Op::convert || (to != DType::boolean && size_of(to) == size_of(from));
}

namespace {

Bits evaluate_here(Op op, DType type, DType result, Bits a, Bits b, Bits c) {
  if (op == Op::select) return a != 0 ? b : c;
  if (op == Op::convert) return convert(type, result, a);
  if (op == Op::reinterpret) {
    if (!is_defined(op, type, result)) undefined(op, type);
    return a;
  }
  switch (type) {
    case DType::boolean: return evaluate_boolean(op, a, b);
    case DType::i8: return evaluate_integer<std::int8_t>(op, type, a, b, c);
    case DType::u8: return evaluate_integer<std::uint8_t>(op, type, a, b, c);
    case DType::i16: return evaluate_integer<std::int16_t>(op, type, a, b, c);
    case DType::u16: return evaluate_integer<std::uint16_t>(op, type, a, b, c);
    case DType::i32: return evaluate_integer<std::int32_t>(op, type, a, b, c);
    case DType::u32: return evaluate_integer<std::uint32_t>(op, type, a, b, c);
    case DType::i64: return evaluate_integer<std::int64_t>(op, type, a, b, c);
    case DType::u64: return evaluate_integer<std::uint64_t>(op, type, a, b, c);
    case DType::f32: return evaluate_float<float>(op, type, a, b, c);
    case DType::f64: return evaluate_float<double>(op, type, a, b, c);
    case DType::f16:
    case DType::bf16: break;
  }
  undefined(op, type);
}

/// Runs `operation` on bits in the default environment, and nothing of it outside.
template <class Operation, class... B>
auto by_default(Operation operation, B... bits) {
  const DefaultFloatOperation environment;
  (DefaultFloatOperation::hold(bits), ...);
  auto result = operation(bits...);
  DefaultFloatOperation::hold(result);
  return result;
}

double value_here(DType type, Bits bits) {
  switch (type) {
    case DType::f16:
    case DType::bf16: {
      const auto half = static_cast<std::uint16_t>(bits);
      if (type == DType::bf16) return std::bit_cast<float>(std::uint32_t{half} << 16);
      f16 value;
      value.bits = half;
      return static_cast<double>(static_cast<float>(value));
    }
    case DType::f32: return static_cast<double>(decode<float>(bits));
    case DType::f64: return decode<double>(bits);
    default:
      return is_signed(type) ? static_cast<double>(signed_of_bits(type, bits))
                             : static_cast<double>(bits);
  }
}

}  // namespace

Bits evaluate(Op op, DType type, DType result, Bits a, Bits b, Bits c) {
  return by_default(
      [=](Bits x, Bits y, Bits z) { return evaluate_here(op, type, result, x, y, z); }, a, b, c);
}

Bits bits_of_double(DType type, double value) {
  return evaluate(Op::convert, DType::f64, type, encode(value));
}
Bits bits_of_int(DType type, std::int64_t value) {
  return evaluate(Op::convert, DType::i64, type, static_cast<Bits>(value));
}
double double_of_bits(DType type, Bits bits) {
  return by_default([=](Bits x) { return value_here(type, x); }, bits);
}

std::string text_of_bits(DType type, Bits bits) {
  if (type == DType::boolean) return bits != 0 ? "true" : "false";
  if (type == DType::f64) {
    const double value = decode<double>(bits);
    return std::isnan(value) ? "nan" : fmt::format("{}", value);
  }
  if (is_float(type)) {  // the shortest f32 text of an f16 or bf16 reads back to it
    const auto value = decode<float>(evaluate(Op::convert, type, DType::f32, bits));
    return std::isnan(value) ? "nan" : fmt::format("{}", value);
  }
  return is_signed(type) ? fmt::format("{}", signed_of_bits(type, bits)) : fmt::format("{}", bits);
}

}  // namespace chainfold::codegen
