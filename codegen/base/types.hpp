// Element types: the storage types f16 and bf16, and the run-time tag DType. The DSL (at compile
// time) and the graph (at run time) share the promotion rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace chainfold {

/// IEEE 754 binary16 as stored: sixteen bits and conversions, no arithmetic (expressions over f16
/// compute in f32). Rounds to nearest even; overflow gives an infinity, NaN stays NaN.
struct f16 {
  std::uint16_t bits = 0;
  f16() = default;
  explicit f16(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(f16, f16) = default;  ///< bitwise
};

/// bfloat16 as stored: the upper half of an f32. Rounds to nearest even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(bf16, bf16) = default;  ///< bitwise
};

/// The element type of an input, expression or output. `boolean` is one byte, 0 or 1, in memory.
enum class DType : std::uint8_t {
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64
};
inline constexpr int kDTypeCount = 13;

constexpr bool is_float(DType t) noexcept { return t >= DType::f16; }
constexpr bool is_integer(DType t) noexcept { return t >= DType::i8 && t <= DType::u64; }
constexpr bool is_signed(DType t) noexcept {
  return is_float(t) || t == DType::i8 || t == DType::i16 || t == DType::i32 || t == DType::i64;
}
/// Bytes of one element in memory.
constexpr int size_of(DType t) noexcept {
  switch (t) {
    case DType::boolean:
    case DType::i8:
    case DType::u8: return 1;
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i32:
    case DType::u32:
    case DType::f32: return 4;
    case DType::i64:
    case DType::u64:
    case DType::f64: return 8;
  }
  return 0;
}
constexpr std::string_view name_of(DType t) noexcept {
  constexpr std::string_view kNames[] = {"bool", "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                         "i64",  "u64", "f16", "bf16", "f32", "f64"};
  return kNames[static_cast<int>(t)];
}

/// The type that an element is computed in. It is f32 for f16 and bf16, and i32 for i8, u8, i16 and
/// u16, as C++ promotes them. The others compute in themselves.
constexpr DType compute_type(DType t) noexcept {
  switch (t) {
    case DType::f16:
    case DType::bf16: return DType::f32;
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16: return DType::i32;
    default: return t;
  }
}

/// Whether two operand types have a common arithmetic type. A signed type has none with u64, since
/// no integer type holds both: cast one of them. Boolean has none but with boolean.
constexpr bool has_common_type(DType a, DType b) noexcept {
  if ((a == DType::boolean) != (b == DType::boolean)) return false;
  if (is_integer(a) && is_integer(b) && (a == DType::u64) != (b == DType::u64))
    return !is_signed(a == DType::u64 ? b : a);
  return true;
}

/// The type of `a op b` for arithmetic, where both sides enter their compute type first. Integers
/// widen to the smallest of i32, u32, i64, u64 that holds both. A float with an integer of up to 16
/// bits is f32 (f64 if the float is). With a wider integer it is f64, so no operand of up to 32
/// bits loses its value. Requires has_common_type(a, b).
constexpr DType promote(DType a, DType b) noexcept {
  const bool small_integer =
      (is_integer(a) && size_of(a) <= 2) || (is_integer(b) && size_of(b) <= 2);
  a = compute_type(a);
  b = compute_type(b);
  if (a == b) return a;
  if (a == DType::f64 || b == DType::f64) return DType::f64;
  if (a == DType::f32 || b == DType::f32) return small_integer ? DType::f32 : DType::f64;
  if (a == DType::u64 || b == DType::u64) return DType::u64;
  return DType::i64;  // any two of i32, u32 and i64
}

/// Whether every value of `from` is a value of `to`.
constexpr bool widens(DType from, DType to) noexcept {
  if (from == to || from == DType::boolean) return true;
  if (is_float(from)) return to == DType::f64 || (to == DType::f32 && from != DType::f64);
  if (to == DType::f64) return size_of(from) <= 4;
  if (to == DType::f32) return size_of(from) <= 2;
  if (!is_integer(to) || size_of(to) <= size_of(from)) return false;
  return is_signed(to) || !is_signed(from);
}

/// The type of a sum: f32 for floats up to 32 bits, f64 for f64, i64 for signed integers. For
/// unsigned integers and for counts of true it is u64.
constexpr DType sum_type(DType t) noexcept {
  if (t == DType::f64) return DType::f64;
  if (is_float(t)) return DType::f32;
  return is_signed(t) ? DType::i64 : DType::u64;
}

/// The type of mean, variance and norm: f32 for types up to 16 bits and f32, else f64.
constexpr DType mean_type(DType t) noexcept {
  return size_of(t) <= 2 || t == DType::f32 ? DType::f32 : DType::f64;
}

/// The DType of a C++ element type. A user's own 16-bit float type can specialise it.
template <class T>
struct dtype_of;
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct dtype_of<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct dtype_of<long> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<unsigned long> {
  static constexpr DType value = DType::u64;
};
template <>
struct dtype_of<unsigned long long> {
  static constexpr DType value = DType::u64;
};
template <>
struct dtype_of<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};

template <class T>
concept Element = requires { dtype_of<std::remove_cv_t<T>>::value; };
template <Element T>
inline constexpr DType kDType = dtype_of<std::remove_cv_t<T>>::value;

}  // namespace chainfold
