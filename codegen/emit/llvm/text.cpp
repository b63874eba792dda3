#include "chainfold/codegen/emit/llvm/text.hpp"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::codegen::llvm {

std::string_view register_type(DType type) noexcept {
  switch (type) {
    case DType::boolean: return "i1";
    case DType::i8:
    case DType::u8: return "i8";
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16: return "i16";
    case DType::i32:
    case DType::u32: return "i32";
    case DType::i64:
    case DType::u64: return "i64";
    case DType::f32: return "float";
    case DType::f64: return "double";
  }
  return "";
}

std::string_view memory_type(DType type) noexcept {
  return type == DType::boolean ? "i8" : register_type(type);
}

std::string vector_of(std::string_view element, int lanes) {
  return lanes == 0 ? std::string(element) : fmt::format("<{} x {}>", lanes, element);
}

std::string literal(DType type, Bits bits) {
  switch (type) {
    case DType::boolean: return bits != 0 ? "true" : "false";
    case DType::f32: {
      // LLVM writes a float as the double of the same value.
      const auto narrow = static_cast<std::uint32_t>(bits);
      const float value = std::bit_cast<float>(narrow);
      if (!std::isnan(value))
        return fmt::format("0x{:016X}", std::bit_cast<Bits>(static_cast<double>(value)));
      const Bits sign = static_cast<Bits>(narrow >> 31) << 63;
      const Bits payload = static_cast<Bits>(narrow & 0x3fffff) << 29;
      return fmt::format("0x{:016X}", sign | 0x7ff8000000000000u | payload);
    }
    case DType::f64: return fmt::format("0x{:016X}", bits);
    case DType::i8: return fmt::format("{}", static_cast<std::int8_t>(bits));
    case DType::i16: return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::i32: return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::i64: return fmt::format("{}", static_cast<std::int64_t>(bits));
    default: return fmt::format("{}", bits);
  }
}

std::string constant(std::string_view element, std::string_view value, int lanes) {
  return lanes == 0 ? std::string(value) : fmt::format("splat ({} {})", element, value);
}

std::string index_vector(std::span<const int> indices) {
  std::string text = fmt::format("<{} x i32> <", indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i)
    text += fmt::format("{}i32 {}", i == 0 ? "" : ", ", indices[i]);
  return text + ">";
}

namespace {

/// "<32 x float>" as it stands in the name of an intrinsic: "v32f32".
std::string mangled(std::string_view type) {
  if (type == "float") return "f32";
  if (type == "double") return "f64";
  if (type == "half") return "f16";
  if (type == "ptr") return "p0";
  if (!type.starts_with('<')) return std::string(type);
  const std::size_t by = type.find(" x ");
  return fmt::format("v{}{}", type.substr(1, by - 1),
                     mangled(type.substr(by + 3, type.size() - by - 4)));
}

}  // namespace

std::string FunctionWriter::let(std::string_view instruction) {
  std::string name = fmt::format("%t{}", next_++);
  text_ += fmt::format("  {} = {}\n", name, instruction);
  return name;
}

void FunctionWriter::line(std::string_view text) { text_ += fmt::format("  {}\n", text); }

void FunctionWriter::label(std::string_view name) {
  text_ += fmt::format("{}:\n", name);
  label_ = name;
}

std::string FunctionWriter::intrinsic(std::string_view name, std::string_view result,
                                      std::span<const std::string> suffix_types,
                                      std::span<const Argument> arguments) {
  std::string symbol = fmt::format("@llvm.{}", name);
  for (const std::string& type : suffix_types) symbol += "." + mangled(type);
  std::string types, values;
  for (const auto& [type, value] : arguments) {
    types += (types.empty() ? "" : ", ") + type;
    values += fmt::format("{}{} {}", values.empty() ? "" : ", ", type, value);
  }
  declarations_.insert(fmt::format("declare {} {}({})\n", result, symbol, types));
  const std::string call = fmt::format("call {} {}({})", result, symbol, values);
  if (result != "void") return let(call);
  line(call);
  return {};
}

std::string FunctionWriter::shuffle(std::string_view element, int from, const std::string& a,
                                    const std::string& b, std::span<const int> indices) {
  const std::string type = vector_of(element, from);
  return let(fmt::format("shufflevector {0} {1}, {0} {2}, {3}", type, a, b.empty() ? "poison" : b,
                         index_vector(indices)));
}

std::string FunctionWriter::splat(std::string_view element, const std::string& scalar, int lanes) {
  if (!scalar.starts_with('%')) return constant(element, scalar, lanes);
  const std::string type = vector_of(element, lanes);
  const std::string one =
      let(fmt::format("insertelement {} poison, {} {}, i64 0", type, element, scalar));
  return let(fmt::format("shufflevector {0} {1}, {0} poison, <{2} x i32> zeroinitializer", type,
                         one, lanes));
}

}  // namespace chainfold::codegen::llvm
