// The names that users write for element types, for messages; name_of (types.hpp) tells the short
// ones of graphs and programs.
#pragma once

#include <string_view>

#include "chainfold/codegen/base/types.hpp"

namespace chainfold {

/// The C++ type: "std::int64_t", "double", "cf::f16".
constexpr std::string_view cpp_name_of(DType t) noexcept {
  constexpr std::string_view kNames[] = {
      "bool",         "std::int8_t",   "std::uint8_t", "std::int16_t",  "std::uint16_t",
      "std::int32_t", "std::uint32_t", "std::int64_t", "std::uint64_t", "cf::f16",
      "cf::bf16",     "float",         "double"};
  return kNames[static_cast<int>(t)];
}

}  // namespace chainfold
