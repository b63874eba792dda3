#include "chainfold/codegen/emit/cuda/text.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace chainfold::codegen::cuda {

std::string_view type_name(DType type) noexcept {
  switch (type) {
    case DType::boolean: return "bool";
    case DType::i8: return "signed char";
    case DType::u8: return "unsigned char";
    case DType::i16: return "short";
    case DType::u16:
    case DType::f16:
    case DType::bf16: return "unsigned short";
    case DType::i32: return "int";
    case DType::u32: return "unsigned";
    case DType::i64: return "long long";
    case DType::u64: return "unsigned long long";
    case DType::f32: return "float";
    case DType::f64: return "double";
  }
  return "";
}

std::string_view memory_type_name(DType type) noexcept {
  return type == DType::boolean ? "unsigned char" : type_name(type);
}

std::string literal(DType type, Bits bits) {
  switch (type) {
    case DType::boolean: return bits & 1 ? "true" : "false";
    case DType::i8: return fmt::format("(signed char){}", static_cast<std::int8_t>(bits));
    case DType::i16: return fmt::format("(short){}", static_cast<std::int16_t>(bits));
    case DType::u8: return fmt::format("(unsigned char){}", static_cast<std::uint8_t>(bits));
    case DType::u16: return fmt::format("(unsigned short){}", static_cast<std::uint16_t>(bits));
    case DType::f16:
    case DType::bf16: return fmt::format("(unsigned short)0x{:04x}", bits & 0xffff);
    case DType::i32: {
      // The most negative value has no literal: 2147483648 is not an int.
      const auto value = static_cast<std::int32_t>(bits);
      if (value == std::numeric_limits<std::int32_t>::min()) return "(-2147483647 - 1)";
      return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    }
    case DType::u32: return fmt::format("{}u", static_cast<std::uint32_t>(bits));
    case DType::i64: {
      const auto value = static_cast<std::int64_t>(bits);
      if (value == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
      return value < 0 ? fmt::format("({}ll)", value) : fmt::format("{}ll", value);
    }
    case DType::u64: return fmt::format("{}ull", bits);
    case DType::f32:
    case DType::f64: {
      const bool single = type == DType::f32;
      const double value =
          single ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                 : std::bit_cast<double>(bits);
      if (!std::isfinite(value)) {
        return single ? fmt::format("__uint_as_float(0x{:08x}u)", static_cast<std::uint32_t>(bits))
                      : fmt::format("__longlong_as_double(0x{:016x}ll)", bits);
      }
      // An f32 is printed as the double it is: then no reader can round it twice.
      std::string text = fmt::format("{}", value);
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      if (single) text += 'f';
      return std::signbit(value) ? "(" + text + ")" : text;
    }
  }
  return {};
}

int elements_per_word(const Type& type) noexcept {
  if (type.elem == DType::boolean || size_of(type.elem) > 2) return 1;
  return type.width > 1 ? 4 / size_of(type.elem) : 1;
}

int variable_count(const Type& type) noexcept {
  const int per_word = elements_per_word(type);
  return (type.width + per_word - 1) / per_word;
}

std::string_view variable_type(const Type& type) noexcept {
  return is_packed(type) ? "unsigned" : type_name(type.elem);
}

std::string variable(ValueId id, const Type& type, int i) {
  if (is_packed(type)) return fmt::format("v{}_w{}", id, i);
  return type.width == 1 ? fmt::format("v{}", id) : fmt::format("v{}_{}", id, i);
}

std::vector<std::string> variables(ValueId id, const Type& type) {
  std::vector<std::string> names;
  for (int i = 0; i < variable_count(type); ++i) names.push_back(variable(id, type, i));
  return names;
}

std::string element(const std::string& word, const Type& type, int i) {
  if (!is_packed(type)) return word;
  const int per_word = elements_per_word(type);
  const int shift = i % per_word * (32 / per_word);
  if (shift == 0) return fmt::format("({}){}", type_name(type.elem), word);
  return fmt::format("({})({} >> {})", type_name(type.elem), word, shift);
}

std::string packed_word(std::span<const std::string> elements, int per_word) {
  std::string text = per_word == 2 ? "cf_pack2(" : "cf_pack4(";
  for (int i = 0; i < per_word; ++i) {
    if (i > 0) text += ", ";
    text += i < static_cast<int>(elements.size()) ? elements[i] : "0";
  }
  return text + ")";
}

std::string identifier(std::string_view name) {
  std::string text(name.substr(0, 40));
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c >= 128 || (!std::isalnum(c) && c != '_'); }, '_');
  return text;
}

std::string mma_name(const MmaRow& row) { return "cf_mma_" + identifier(row.name); }

}  // namespace chainfold::codegen::cuda
