// Literals: plain C++ numbers in an expression, as bits of the element type they take there.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "chainfold/codegen/base/ops.hpp"
#include "chainfold/codegen/base/types.hpp"

namespace chainfold::codegen {

/// The bits of a C++ value of an element type.
template <Element T>
Bits bits_of(T value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if constexpr (sizeof(T) == 1) {
    return std::bit_cast<std::uint8_t>(value);
  } else if constexpr (sizeof(T) == 2) {
    return std::bit_cast<std::uint16_t>(value);
  } else if constexpr (sizeof(T) == 4) {
    return std::bit_cast<std::uint32_t>(value);
  } else {
    return std::bit_cast<std::uint64_t>(value);
  }
}

/// Whether `target` has the value that `bits` has as a `source`. NaN and infinities are in every
/// float type; no float is in an integer type.
bool is_representable(DType target, DType source, Bits bits);

/// The bits, as a `target`, of the literal that `bits` is as a `source`. Throws
/// UserError(type_mismatch) with the value and both types if `target` does not have that value.
Bits literal_bits(DType target, DType source, Bits bits);

}  // namespace chainfold::codegen
