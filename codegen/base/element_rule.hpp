// ElementRule: what the compiler says where a type is no element type.
#pragma once

#include <complex>
#include <ranges>
#include <type_traits>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold {

template <class T>
struct IsComplexNumber : std::false_type {};
template <class T>
struct IsComplexNumber<std::complex<T>> : std::true_type {};

/// Stands for an element type that was not named.
struct Unnamed {};

/// Refuses, in one message that names the fix, a type that is no Element.
template <class T>
struct ElementRule {
  using Plain = std::remove_cvref_t<T>;
  static constexpr bool kElement = Element<T>;
  static constexpr bool kReference = std::is_reference_v<T> && Element<Plain>;
  static constexpr bool kCharacter =
      std::is_same_v<Plain, char> || std::is_same_v<Plain, wchar_t> ||
      std::is_same_v<Plain, char8_t> || std::is_same_v<Plain, char16_t> ||
      std::is_same_v<Plain, char32_t>;
  static constexpr bool kLongDouble = std::is_same_v<Plain, long double>;
  static constexpr bool kComplex = IsComplexNumber<Plain>::value;
  static constexpr bool kEnumeration = std::is_enum_v<Plain>;
  static constexpr bool kPointer = std::is_pointer_v<Plain> || std::is_array_v<Plain>;
  static constexpr bool kUnnamed = std::is_same_v<Plain, Unnamed>;
  static constexpr bool kData = std::ranges::range<Plain> && !std::is_array_v<Plain>;
  static constexpr bool kOther = !kElement && !kReference && !kCharacter && !kLongDouble &&
                                 !kComplex && !kEnumeration && !kPointer && !kUnnamed && !kData;
  static_assert(!kUnnamed,
                "chainfold: an element type is missing; name it, e.g. cf::input<float>(\"x\"), "
                "cf::param<float>(\"k\"), cf::cast<float>(x)");
  static_assert(!kData,
                "chainfold: a range of data is no element type and no part of an expression; name "
                "the type of one element and bind the data by name, e.g. auto y = "
                "cf::input<float>(\"y\") and {{\"y\", data}}");
  static_assert(!kLongDouble, "chainfold: long double is no element type; use double");
  static_assert(!kCharacter,
                "chainfold: a character is no element type, as its sign and width differ between "
                "machines; use std::int8_t or std::uint8_t (or the integer of its width)");
  static_assert(!kComplex,
                "chainfold: std::complex is no element type; use two inputs, one of the real and "
                "one of the imaginary parts");
  static_assert(!kEnumeration,
                "chainfold: an enumeration is no element type; use its underlying integer type");
  static_assert(!kPointer,
                "chainfold: a pointer or array is no element type; name the type of one element, "
                "e.g. cf::input<float>(\"x\")");
  static_assert(!kReference,
                "chainfold: a reference is no element type; name the type itself, e.g. float");
  static_assert(!kOther,
                "chainfold: this is no element type; element types are bool, std::int8_t to "
                "std::int64_t, std::uint8_t to std::uint64_t, cf::f16, cf::bf16, float and "
                "double");
};

/// T, or float where T is no element type and ElementRule has said so: one message is enough.
template <class T>
using ElementOr = std::conditional_t<Element<T>, T, float>;

}  // namespace chainfold
