#include "chainfold/codegen/base/literal.hpp"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/type_names.hpp"

namespace chainfold::codegen {
namespace {

/// Bits of the significand, the hidden one included.
int precision(DType type) {
  switch (type) {
    case DType::f16: return 11;
    case DType::bf16: return 8;
    case DType::f32: return 24;
    default: return 53;
  }
}

bool integer_fits(DType target, bool negative, std::uint64_t magnitude) {
  const int width = static_cast<int>(std::bit_width(magnitude));
  if (is_float(target)) {
    // Only f16's range ends below the integers'.
    if (target == DType::f16 && magnitude > 65504) return false;
    return magnitude == 0 || width - std::countr_zero(magnitude) <= precision(target);
  }
  const int bits = 8 * size_of(target);
  if (!is_signed(target)) return !(negative && magnitude != 0) && width <= bits;
  const std::uint64_t limit = std::uint64_t{1} << (bits - 1);
  return negative ? magnitude <= limit : magnitude < limit;
}

}  // namespace

bool is_representable(DType target, DType source, Bits bits) {
  if (target == source) return true;
  if (target == DType::boolean || source == DType::boolean) return false;
  if (is_float(source)) {
    if (!is_float(target)) return false;
    const double value = double_of_bits(source, bits);
    if (std::isnan(value)) return true;
    // As bits: a caller that reads subnormals as zero would find them equal.
    const double kept = double_of_bits(target, bits_of_double(target, value));
    return std::bit_cast<std::uint64_t>(kept) == std::bit_cast<std::uint64_t>(value);
  }
  const bool negative = is_signed(source) && (bits >> (8 * size_of(source) - 1)) != 0;
  const Bits wide =
      evaluate(Op::convert, source, is_signed(source) ? DType::i64 : DType::u64, bits);
  return integer_fits(target, negative, negative ? 0 - wide : wide);
}

Bits literal_bits(DType target, DType source, Bits bits) {
  if (is_representable(target, source, bits)) return evaluate(Op::convert, source, target, bits);
  const std::string text = text_of_bits(source, bits);
  if (is_float(target)) {
    throw UserError(
        ErrorCode::type_mismatch,
        fmt::format(
            "the literal {} ({}) is not exactly representable as {}, the type that the "
            "expression beside it is computed in; round it where it is written (a suffix f, "
            "a static_cast) or cast the expression",
            text, cpp_name_of(source), cpp_name_of(target)));
  }
  throw UserError(ErrorCode::type_mismatch,
                  fmt::format("the literal {} ({}) is not representable as {}, the type of the "
                              "expression beside it; cast the expression to a type that holds it "
                              "(cf::cast) or change the literal",
                              text, cpp_name_of(source), cpp_name_of(target)));
}

}  // namespace chainfold::codegen
